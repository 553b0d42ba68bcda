from tests.integration.recovery.conftest import _settings, world, world_with_target

__all__ = ["_settings", "world", "world_with_target"]
