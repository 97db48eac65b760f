/** The reason of an invoice line that is not the regular charge of its period, formatted from its fields. */
import { LINE_KINDS } from '../../../core/rating/line-kinds.ts';
import { formatMoney } from '../../figures/format.ts';
import { defineTexts, type Language } from '../../texts/texts.ts';

type ReasonFields = {
  readonly kind?: string | null | undefined;
  readonly less?: { readonly amount: string; readonly invoiced: string } | null | undefined;
  readonly of_term?: { readonly used: string; readonly committed: string } | null | undefined;
};

export const REASON_TEXTS = defineTexts(
  {
    overage: 'above the commitment, times its factor',
    true_up: 'shortfall of the commitment',
    of_term: (used: string, committed: string) => `${used} of ${committed} were used`,
    unused_time: 'unused time: it was charged in advance and ended by a change',
    resumed: 'resumed: it was charged up to an end that was taken back',
    late_events: 'events that came after the invoice of their period was final',
    corrected_events: 'events that were corrected after the invoice of their period was final',
    threshold_surplus: 'more was invoiced before the end of the period than its usage costs',
    before_period_end: (amount: string) => `less ${amount} that was invoiced before the end of the period`,
    by_other_invoices: (amount: string) => `less ${amount} that other invoices have charged`,
  },
  {
    de: {
      overage: 'über der Zusage, mal ihrem Faktor',
      true_up: 'Fehlbetrag zur Zusage',
      of_term: (used, committed) => `genutzt wurden ${used} von ${committed}`,
      unused_time: 'ungenutzte Zeit: im Voraus berechnet und durch eine Änderung beendet',
      resumed: 'fortgesetzt: bis zu einem Ende berechnet, das zurückgenommen wurde',
      late_events: 'Ereignisse, die nach der endgültigen Rechnung ihres Zeitraums kamen',
      corrected_events: 'Ereignisse, die nach der endgültigen Rechnung ihres Zeitraums berichtigt wurden',
      threshold_surplus: 'vor dem Ende des Zeitraums wurde mehr berechnet, als seine Nutzung kostet',
      before_period_end: (amount) => `abzüglich ${amount}, die vor dem Ende des Zeitraums berechnet wurden`,
      by_other_invoices: (amount) => `abzüglich ${amount}, die andere Rechnungen berechnet haben`,
    },
  },
);

/** The reason of a line; null for the regular charge of its period. */
export function formatLineReason(
  fields: ReasonFields | null | undefined,
  language: Language,
  currency: string,
): string | null {
  if (!fields) return null;
  const texts = REASON_TEXTS[language];
  const { less, of_term } = fields;
  const money = (amount: string) => formatMoney(language, amount, currency);
  const kind = LINE_KINDS.find((each) => each === fields.kind);
  const parts = [
    ...(kind ? [texts[kind]] : []),
    ...(kind === 'true_up' && of_term ? [texts.of_term(money(of_term.used), money(of_term.committed))] : []),
    ...(less
      ? [
          less.invoiced === 'before_period_end'
            ? texts.before_period_end(money(less.amount))
            : texts.by_other_invoices(money(less.amount)),
        ]
      : []),
  ];
  return parts.length > 0 ? parts.join('; ') : null;
}
