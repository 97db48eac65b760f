/** How far an environment is on its way to the first bill. All of it is read from the API. */
export const STEPS = ['sell', 'send', 'subscribe', 'advance', 'production'] as const;
export type StepKey = (typeof STEPS)[number];

export type ProgressFacts = {
  readonly plan_count: number;
  readonly price_count: number;
  /** Events that a meter of the environment counts. */
  readonly has_counted_event: boolean;
  readonly subscription_count: number;
  /** Whether the clock of the year has left its first instant. */
  readonly has_advanced: boolean;
  readonly is_in_production: boolean;
};

export type Progress = { readonly done: ReadonlySet<StepKey>; readonly next: StepKey | null };

export function deriveProgress(facts: ProgressFacts): Progress {
  const isDone: Record<StepKey, boolean> = {
    sell: facts.plan_count > 0 && facts.price_count > 0,
    send: facts.has_counted_event,
    subscribe: facts.subscription_count > 0,
    advance: facts.has_advanced,
    production: facts.is_in_production,
  };
  return { done: new Set(STEPS.filter((step) => isDone[step])), next: STEPS.find((step) => !isDone[step]) ?? null };
}

/** Whether a step is open: the one of the URL, else the next one. Events can still be sent while the customer is subscribed. */
export function isStepOpen(key: StepKey, chosen: StepKey | 'none' | undefined, next: StepKey | null): boolean {
  return chosen === undefined ? key === next || (key === 'send' && next === 'subscribe') : chosen === key;
}

/** Time between the receipt of an event and its appearance, in seconds; null where the clocks of both sides disagree. */
export function measureArrival(received_at: string, shown_at_ms: number): string | null {
  const elapsed_ms = shown_at_ms - new Date(received_at).getTime();
  return elapsed_ms >= 0 && elapsed_ms < 60_000 ? (elapsed_ms / 1000).toFixed(1) : null;
}
