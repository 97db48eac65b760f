/** Tabs, filters and sheets in the address of the page of events. */
export const UNCOUNTED_REASONS = ['unmatched', 'unusable', 'conflict', 'dead_letter'] as const;
export type ReasonFilter = (typeof UNCOUNTED_REASONS)[number];
/** Tabs besides the one of all events. */
export const EVENT_TABS = ['uncounted', 'corrected', 'late'] as const;
export type EventTab = (typeof EVENT_TABS)[number];
export const CORRECTION_FILTERS = ['replace', 'void'] as const;
export type CorrectionFilter = (typeof CORRECTION_FILTERS)[number];
export const EVENT_DIALOGUES = ['correct', 'mend', 'void', 'send'] as const;

/**
 * `reason` filters events that are not counted, and `action` corrections; `customer` is an external id; `property` is key=value; `from` and
 * `to` are days, `to` is not in the range; `event` is the event whose thread is open; `letter` is the dead letter that is mended.
 */
export type EventsSearch = {
  tab?: EventTab;
  reason?: ReasonFilter;
  action?: CorrectionFilter;
  customer?: string;
  name?: string;
  property?: string;
  from?: string;
  to?: string;
  event?: string;
  do?: (typeof EVENT_DIALOGUES)[number];
  letter?: string;
};
