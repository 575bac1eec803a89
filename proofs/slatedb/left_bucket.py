"""A bucket that a run has left, served again: `python -m proofs.slatedb.left_bucket FOLDER/windlass-weed-...`.

It prints what to set and where the bucket is, and serves a copy until Enter is pressed.
"""

import shutil
import sys
from pathlib import Path

from tests.slatedb.s3 import CREDENTIALS
from tests.slatedb.weed import Weed


def main(folder: Path) -> None:
    """Serve what a server of SeaweedFS has left in its folder."""
    weed = Weed()
    shutil.copytree(folder / "data", weed.folder / "data", dirs_exist_ok=True)
    with weed:
        for name, value in CREDENTIALS.items():
            print(f"export {name}={value}")
        print(weed.url("PREFIX"), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
