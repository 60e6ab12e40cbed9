"""The Django project and its one app: the catalog, its evidence and its pages."""
