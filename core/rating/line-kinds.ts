/**
 * Kinds of invoice lines that are not the regular charge of their period (docs/rules/invoices.md). The `reason` of such a line is its
 * human-readable text.
 */
export const LINE_KINDS = [
  'overage',
  'true_up',
  'unused_time',
  'resumed',
  'late_events',
  'corrected_events',
  'threshold_surplus',
] as const;
