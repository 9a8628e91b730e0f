"""What the private side hands to the sampler. Not a conftest.py, so that `import conftest` means the one above all folders."""

import numpy as np
import pytest

from dpcipher.privacy.draws import NoiseSource, OpenDPNoise


@pytest.fixture(name="handed")
def handed_counts(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Every array that is handed to the sampler, which then adds nothing."""
    seen: list[np.ndarray] = []

    def exact(self: OpenDPNoise, counts: np.ndarray, mechanism: object) -> np.ndarray:
        seen.append(counts.copy())
        return counts

    monkeypatch.setattr(OpenDPNoise, "_noisy", exact)
    # Each table by itself, as it goes into the one call for all.
    monkeypatch.setattr(OpenDPNoise, "_noisy_tables", NoiseSource._noisy_tables)
    return seen
