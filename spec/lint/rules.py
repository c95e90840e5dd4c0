"""All rules by their identifiers, in the order in which their findings are printed."""

from collections.abc import Callable, Iterator, Mapping

from lint import formulas, keywords, languages, references, registers, stability, terms
from lint.specification import Finding, Specification

Rule = Callable[[Specification], Iterator[Finding]]

RULES: Mapping[str, Rule] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        keywords.one_keyword,
        keywords.one_identifier,
        keywords.refused_word,
        keywords.duty_without_id,
        keywords.no_duty_in_informative,
        keywords.no_duty_in_heading,
        languages.clause_in_both,
        languages.same_headings,
        languages.id_in_both_languages,
        languages.same_keyword,
        languages.same_words_of_the_wire,
        languages.same_numbers,
        languages.same_units,
        terms.term_in_both_languages,
        terms.defined_once,
        terms.term_used,
        terms.term_defined,
        terms.term_variant,
        terms.abbreviation_defined,
        terms.abbreviation_used,
        terms.symbol_listed,
        terms.symbol_used,
        formulas.formula_whole,
        formulas.same_formulas,
        formulas.measure_formula,
        registers.register_text,
        registers.check_or_reason,
        registers.identifier_kept,
        registers.withdrawn_unused,
        registers.features_listed,
        registers.feature_required,
        registers.names_listed,
        registers.word_published,
        registers.operation_published,
        stability.item_marked,
        stability.mark_earned,
        stability.deprecation_told,
        stability.promise_stated,
        references.reference_resolves,
        references.document_listed,
        references.document_cited,
    )
}


def findings(specification: Specification) -> list[Finding]:
    """What all rules find."""
    return [finding for rule in RULES.values() for finding in rule(specification)]
