"""What a text of metrics says."""

from prometheus_client.parser import text_string_to_metric_families


def values(text: bytes) -> dict[str, float]:
    """Return each number by name and labels, as `name{queue=a,kind=b,state=c}`, read by the parser of Prometheus."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text.decode()):
        assert family.documentation, family.name
        for name, labels, value, *_ in family.samples:
            ordered = sorted(labels.items(), key=lambda label: (label[0] != "queue", label[0] != "kind", label))
            key = f"{name}{{{','.join(map('='.join, ordered))}}}" if labels else name
            assert key not in found, f"{key} is there twice"
            found[key] = value
    return found
