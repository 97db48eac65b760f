/** Plans the year in an environment with a clock: its months, and the events that each of them repeats. */
export type CopiedEvent = {
  readonly id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly timestamp: string;
  readonly properties: Readonly<Record<string, unknown>>;
};
export type YearEvent = Omit<CopiedEvent, 'id'> & { readonly event_id: string };

export const YEAR_MONTHS = 12;
/** Drafts become final two hours after their period by default; a third hour covers it. */
const REST_HOURS = 3;

/** The first instant of the month that is `months` after that of `at`, in UTC. */
export function findMonthStart(at: Date, months = 0): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + months, 1));
}

/** The instant to which the clock advances: `months` further month ends, and the rest of their drafts. */
export function advanceTarget(frozen_time: string, months: number): string {
  const target = findMonthStart(new Date(frozen_time), months);
  target.setUTCHours(REST_HOURS);
  return target.toISOString();
}

/** Each event once a month, at its own day and time. A day that a month lacks becomes its last instant. */
export function repeatMonthly(events: readonly CopiedEvent[], first: Date, months = YEAR_MONTHS): YearEvent[] {
  return Array.from({ length: months }, (_, month) => {
    const start = findMonthStart(first, month).getTime();
    const end = findMonthStart(first, month + 1).getTime();
    return events.map(({ id, event_name, external_customer_id, timestamp, properties }) => {
      const offset_ms = new Date(timestamp).getTime() - findMonthStart(new Date(timestamp)).getTime();
      const at = new Date(Math.min(start + offset_ms, end - 1));
      return {
        ...{ event_name, external_customer_id, properties },
        event_id: `${id}-month-${month + 1}`,
        timestamp: at.toISOString(),
      };
    });
  }).flat();
}
