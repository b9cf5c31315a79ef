"""Which projects were read by another extractor than today's: known from the manifest alone."""

from cortex.storage.lake.manifest import Manifest
from cortex.transforms.extract.ground.extractor import extractor_fingerprint
from cortex.transforms.policy import Policy


def outdated(manifest: Manifest, policy: Policy) -> list[str]:
    """Return the projects with events of another extractor or policy than today's, but for those declined."""
    today = extractor_fingerprint(policy)
    notes = manifest.notes
    return [
        name
        for name in manifest.partitions("turns")
        if today not in (notes.extractors.get(name), notes.declined.get(name))
    ]
