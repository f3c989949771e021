"""Building at a URL: made in the cache, then published; what is published already is kept."""

import logging
from collections.abc import Callable

from graphxai_data.building.staging import Order, difference
from graphxai_data.building.verify import verify
from graphxai_data.errors import GraphXAIDataError
from graphxai_data.files.store import StoreError
from graphxai_data.manifest import EXTRAS, RINGS_NAME, Manifest
from graphxai_data.remote import RemoteBuild

log = logging.getLogger(__name__)


def build_at_url(
    remote: RemoteBuild, order: Order, make: Callable[[bool], Manifest], replace_existing: bool
) -> Manifest:
    """Build in the cache and publish, or keep what is published if it is the same and whole.

    Args:
        remote: where the build is published.
        order: what is asked for.
        make: builds into `remote.root`; with True, also where something else is.
        replace_existing: publish again, whatever is there.
    """
    with remote.named():
        if remote.exists() and not replace_existing:
            measured = (remote.fetch() / RINGS_NAME).exists()
            manifest = make(False)
            if not measured:
                _publish_measurement(remote, manifest)
            return manifest
        # Before hours of work: may anything be written there?
        remote.probe()
        manifest = make(replace_existing or not _is_begun(remote, order))
        remote.publish(manifest, replace_existing=replace_existing)
        return manifest


def _is_begun(remote: RemoteBuild, order: Order) -> bool:
    """Whether what the cache has, whole or not, is of this order: an upload that broke off."""
    if not remote.folder.exists():
        return True
    try:
        return difference(Manifest.load(remote.folder), order) is None and not verify(remote.folder)
    except GraphXAIDataError as error:
        log.info("made again: %s", error)
        return False


def _publish_measurement(remote: RemoteBuild, manifest: Manifest) -> None:
    """Publish what was measured just now of a build that was there without."""
    try:
        remote.publish(manifest, EXTRAS)
    except StoreError as error:  # as in a folder that one may only read
        log.warning("not published: %s", error)
