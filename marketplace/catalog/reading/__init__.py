"""Words of providers into values: money, rates, sizes, counts, links, places. Pure text in."""
