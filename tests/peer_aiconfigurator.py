"""One search of AIConfigurator's own command line, where it is installed.

It answers another question: which parallel degrees and batches serve one model best on one type of
GPU by measured kernels. It knows no listing, host, link evidence or price, and starts anew each
time. Optional: its packages may differ from ours, so a command on PATH from an environment of its
own will do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

COMMAND = "aiconfigurator"
BRINGS = "`pip install aiconfigurator==0.12.0` in an environment whose bin is on PATH brings it"
GPUS = 8
INPUT_TOKENS, OUTPUT_TOKENS = 4000, 500
TTFT_MS, TPOT_MS = 1000, 40
QUESTION = {
    "model-path": "meta-llama/Meta-Llama-3.1-70B",
    "system": "h200_sxm",
    "total-gpus": GPUS,
    "isl": INPUT_TOKENS,
    "osl": OUTPUT_TOKENS,
    "ttft": TTFT_MS,
    "tpot": TPOT_MS,
}
"""Options of `aiconfigurator cli default`, version 0.12.0; its model configurations hold this one,
so that nothing is fetched."""
MOST_SECONDS = 300


def peer_search() -> Callable[[], str] | None:
    """A call that searches once and returns what it printed; none where it is not installed."""
    beside = Path(sys.executable).parent
    program = shutil.which(COMMAND, path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    return (lambda: _search(program)) if program else None


def _search(program: str) -> str:
    options = [f"--{name}={value}" for name, value in QUESTION.items()]
    done = subprocess.run(
        [program, "cli", "default", *options],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    if done.returncode or "tokens/s/gpu" not in done.stdout + done.stderr:
        raise RuntimeError(f"{COMMAND} found nothing: {done.stderr[-500:]}")
    return done.stdout
