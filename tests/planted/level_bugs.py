"""Violations of finding levels: texts of one person that show too often, and failures that are not counted."""

from bug import Bug

LEVEL_BUGS = (
    Bug(
        "threshold too low by one",
        "devised here",
        "privacy/partitions.py",
        "return cls(noise, threshold_for(noise.scale, delta, unit), delta)",
        "return cls(noise, threshold_for(noise.scale, delta, unit) - 1, delta)",
        "audits/test_level_audit.py::test_finding_levels_passes",
    ),
    Bug(
        "max_rows ignored in the threshold",
        "Wilson et al. 2020: thresholds must grow with the partitions of a user",
        "privacy/partitions.py",
        "k, limit = unit.max_rows, float(delta) * (1 - _SLACK)",
        "k, limit = 1, float(delta) * (1 - _SLACK)",
        "audits/test_level_audit.py::test_finding_levels_passes",
    ),
    Bug(
        "texts of rows beyond max_rows are asked about",
        "devised here",
        "curator/texts.py",
        "for text, code in self._codes.items() if counts[code] > 0}",
        "for text, code in self._codes.items()}",
        "audits/test_level_audit.py::test_finding_levels_passes",
    ),
    Bug(
        "which rows of a person count depends on the texts of others",
        "devised here",
        "curator/persons.py",
        "hashes[axis][column] if axis in hashes else",
        "hashes[axis][column] if axis in hashes and axis < 0 else",
        "curator/test_discover.py::test_which_rows_of_a_person_count_depends_on_nobody_else",
    ),
    Bug(
        "a lone text compared with the threshold before noise",
        "devised here: an early exit for rare texts that lets frequent ones through untouched",
        "privacy/partitions.py",
        "        noisy = source.add_named(texts, true, self.noise)\n",
        "        noisy = true\n",
        "privacy/test_partitions.py::test_named_texts_are_noisy",
    ),
    Bug(
        "failures are not added up",
        "devised here",
        "privacy/composition.py",
        "self.failure + times * cost.failure",
        "times * cost.failure",
        "privacy/test_failing_charges.py::test_both_sums_stay_within_a_limit_of_rho_and_delta",
    ),
    Bug(
        "failures come on top of the delta that rho uses up",
        "devised here: a probability that is spent twice",
        "privacy/composition.py",
        "rho_for(limit.epsilon, limit.delta - self.most_failure(limit))",
        "rho_for(limit.epsilon, limit.delta)",
        "privacy/test_failing_charges.py::test_the_first_charge_of_an_epsilon_delta_limit_fixes_the_division",
    ),
    Bug(
        "the cap of found levels ranks true counts",
        "own history: escaped the tests until answers were replayed on texts that the cap decides between",
        "privacy/partitions.py",
        "(-int(count), text) for count, text in zip(noisy, texts, strict=True) if count >= self.threshold",
        "(-int(exact), text) for count, exact, text in zip(noisy, true, texts, strict=True) if count >= self.threshold",
        "privacy/test_replay.py::test_a_measurement_tells_a_neighbour_by_its_answers_alone[found levels with a cap]",
    ),
)
