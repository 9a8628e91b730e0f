"""What is printed wrongly in the paper, or differently in two places, and how it is taken here."""

ERRATA = (
    "*Scale of the noise* (algorithm 1): Lap(0, ε/(m|Q|)) is inverted and lacks the sensitivity; m|Q|/ε is meant, as claim 1 has it.",
    "*Loops* (algorithm 1): the sets to build are those outside Q's closure, not `q_i ∉ (T_{j+1} ∩ Q)`; k runs to p_i, not p_i − 1 (with p_i = 2 there would be no equation); `X_{i0}`, `b` inside z, and a bracket are slips.",
    "*A is not block-diagonal over k* (algorithm 1): with Diag{A₁, …} every family would have a z of its own. The supplement stacks them over one z, which is what is done here.",
    "*Exponential mechanism* (definition 4): the printed denominator integrates the exponent itself; exp is missing.",
    "*Parallel composition* (definition 2): {D}ᵢ should be {Dᵢ}.",
    "*Example* (2.3): P(V₃ | V₂) ∖ P(V₃ = K₃ | V₁) should condition on V₂; X₀ is X_{i1}.",
    "*“3 different query sets”* (3.1): two are listed. We run all 1-way tables as Q₁ too.",
    "*Costs* (3.1): 32 for 2-way and 20 for 3-way tables are swapped; figure 6 is judged with both.",
    "*“A binary attribute as the outcome”* with *“10 parameters”* (3.1): main effects on a binary outcome have 6; ten are a 3-level outcome.",
    "*Colours* (3.1): “II+/orange bar and the I-/green bar” must be II-/green.",
    "*Number of cells*: 20, 32, 149, 62,200 and 8,440 are log-linear parameters (the first two with the constant, the others without), not cells.",
    "*8,440* (1.2) belongs to the 120 three-way tables, not to the 45 two-way tables, whose count is 760; the printed 99.99 % belongs to 760. 62,200 of 9,765,625 is 99.36 % less, not 95.4 %.",
    "*Experiment 1 saves no storage*: 37 (2-way) and 60 (3-way) cells must be stored, more than the 36 of the full table.",
    "*Levels of the bankruptcy data* (supplement): the frequencies of average and negative are swapped in all six rows (industrial risk, for one, has 81 average and 89 negative).",
)
