"""Build at a URL: made in the cache, then published; an identical published build is kept."""

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
    remote: RemoteBuild,
    order: Order,
    build_in_cache: Callable[..., Manifest],
    replace_existing: bool,
) -> Manifest:
    """Build in the cache and publish, or keep an identical published build.

    Args:
        remote: where the build is published.
        order: what to build.
        build_in_cache: builds into `remote.root`; takes `replace_existing`.
        replace_existing: publish again, whatever has been published.
    """
    with remote.named():
        if remote.exists() and not replace_existing:
            was_measured = (remote.fetch() / RINGS_NAME).exists()
            manifest = build_in_cache(replace_existing=False)
            if not was_measured:
                _publish_measurement(remote, manifest)
            return manifest
        # Fail before hours of work if the store cannot be written.
        remote.probe()
        replace_cached = replace_existing or not _can_continue(remote, order)
        manifest = build_in_cache(replace_existing=replace_cached)
        remote.publish(manifest, replace_existing=replace_existing)
        return manifest


def _can_continue(remote: RemoteBuild, order: Order) -> bool:
    """Return whether the cache is empty or has an undamaged build of this order."""
    if not remote.folder.exists():
        return True
    try:
        return difference(Manifest.load(remote.folder), order) is None and not verify(remote.folder)
    except GraphXAIDataError as error:
        log.info("the build in the cache is made again: %s", error)
        return False


def _publish_measurement(remote: RemoteBuild, manifest: Manifest) -> None:
    """Publish the measurement and cards of a build that was published without them."""
    try:
        remote.publish(manifest, EXTRAS)
    except StoreError as error:  # the store may be read-only
        log.warning("the measurement was not published: %s", error)
