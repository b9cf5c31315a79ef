"""The wheel holds what the repository holds, the links resolve, and nothing of one machine is in it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.process.test_packaging import PACKAGED, ROOT, repository_files


def packaged_name(name: str) -> str:
    """Return where a file of a package lies in the wheel."""
    return name if name.startswith("cortex/") else f"cortex/{name.removeprefix('benchmarks/')}"


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(tmp_path: Path):
    source = tmp_path / "source"
    for name in repository_files():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        packaged_name(name)
        for name in repository_files()
        if name.startswith(PACKAGED) and not (ROOT / name).is_symlink()
    }
    assert held == wanted
