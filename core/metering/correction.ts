/** Corrections of events (docs/rules/events.md): a void removes an event from usage, a replacement gives it other content. */
export const CORRECTION_ACTIONS = ['void', 'replace'] as const;
export type CorrectionAction = (typeof CORRECTION_ACTIONS)[number];

/** `unknown_event`: no event with the id was accepted. */
export const CORRECTION_STATES = ['requested', 'applied', 'unknown_event'] as const;
export type CorrectionState = (typeof CORRECTION_STATES)[number];
