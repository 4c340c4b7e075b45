"""What the scripts here say of themselves; it runs on the Pythons of old Rays, too."""

noted = {}


def record(**facts):
    """Notes plain data by names."""
    noted.update({name: plain(value) for name, value in facts.items()})


def plain(value):
    """A value as JSON has it; of floats, five digits."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(inner) for inner in value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return float("%.5g" % value)
    return value if isinstance(value, (int, str, bool, type(None))) else type(value).__name__
