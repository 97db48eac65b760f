/** Names of the due work, in the order in which it runs at one instant. The scheduler's jobs have the same names (schedule/due-work.ts). */
export const DUE_WORK_NAMES = [
  'bill-due-periods',
  'end-unpaid-subscriptions',
  'apply-credit-grants',
  'finalize-due-invoices',
  'bill-late-usage',
  'pursue-payments',
  'tell-overdue-invoices',
  'end-overdue-subscriptions',
  'end-reservations',
  'expire-credits',
  'top-up-wallets',
  'bill-thresholds',
  'watch-alerts',
  'add-due-exports',
] as const;
export type DueWorkName = (typeof DUE_WORK_NAMES)[number];
