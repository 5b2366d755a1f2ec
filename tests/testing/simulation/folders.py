from pathlib import Path

ROOT = Path(__file__).parents[3]
REGRESSIONS = sorted((ROOT / "tests" / "regressions" / "simulation").glob("*.json"))
