/**
 * Prepares the year: an environment with a clock, the catalogue, the customer, the subscription and the events. Each part is found again
 * if an interrupted run has already made it, and events have ids of their own, so a second run continues where the first one stopped.
 */
import { api, asEvents, readData, readEvents } from '../../client/client.ts';
import { exactBody, formatExact } from '../../client/exact-json.ts';
import type { components } from '../../client/openapi.d.ts';
import { buildEnvironmentOptions } from './environment.ts';
import { advanceTarget, type CopiedEvent, findMonthStart, repeatMonthly, YEAR_MONTHS } from './plan-year.ts';

export const YEAR_STEPS = ['environment', 'catalogue', 'customer', 'events', 'advance'] as const;
export type YearStep = (typeof YEAR_STEPS)[number];

/** Events of the customer that are copied; each is repeated in every month. */
const COPIED_EVENTS_MAX = 500;
/** The largest page of `GET /events`. */
const EVENT_PAGE_SIZE = 50;
const BULK_MAX = 500;
const POLL_MS = 500;

type YearSubscription = { customer_id: string; plan_id: string; currency: string; billing_period: string };
export type YearInput = {
  readonly source_environment_id: string;
  readonly name: string;
  readonly subscription: YearSubscription & { billing_period_count?: number };
  /** Names of the events that the meters count; others are not copied. */
  readonly event_names: ReadonlySet<string>;
  readonly plan: { name: string; lookup_key?: string | null };
  /** The environment of an interrupted run, or the one whose year is running. */
  readonly environment_id: string | null;
  readonly months: number;
  readonly signal: AbortSignal;
  readonly onStep: (step: YearStep, detail?: string) => void;
};

type Elsewhere = ReturnType<typeof buildEnvironmentOptions>;
type ClockRecord = components['schemas']['TestClockResponse'];

export async function runYear(input: YearInput): Promise<void> {
  const { onStep, months } = input;
  onStep('environment');
  const environment_id = input.environment_id ?? (await createEnvironment(input.name));
  const there = buildEnvironmentOptions(environment_id);
  const clock = await ensureClock(input, there);
  if (!hasAdvanced(clock) && environment_id !== input.source_environment_id) {
    onStep('catalogue');
    await copyCatalogue({ source_environment_id: input.source_environment_id, target_environment_id: environment_id });
    onStep('customer');
    const external_customer_id = await copySubscription(input, clock, there);
    onStep('events');
    await copyEvents(input, external_customer_id, clock, there);
  }
  onStep('advance', clock.frozen_time);
  await advance(clock, { ...input, months }, there);
}

/** Whether the clock of a year has left its first instant. */
export function hasAdvanced({ frozen_time, metadata }: Pick<ClockRecord, 'frozen_time' | 'metadata'>): boolean {
  return frozen_time !== metadata?.['first_instant'];
}

async function createEnvironment(name: string): Promise<string> {
  return (await readData(api.POST('/environments', { body: { name, type: 'development' } }))).id;
}

/** The clock starts a year back, so that its months are those that have just passed. */
async function ensureClock({ source_environment_id }: YearInput, there: Elsewhere): Promise<ClockRecord> {
  const { items } = await readData(api.GET('/test-clocks', { ...there }));
  if (items?.[0]) return items[0];
  const first_instant = findMonthStart(new Date(), -YEAR_MONTHS).toISOString().replace('.000Z', 'Z');
  return readData(
    api.POST('/test-clocks', {
      body: { frozen_time: first_instant, metadata: { source_environment_id, first_instant } },
      ...there,
    }),
  );
}

/** Copies the catalogue and waits for the workflow. Records that were copied before are not copied again. */
export async function copyCatalogue(input: {
  source_environment_id: string;
  target_environment_id: string;
}): Promise<void> {
  const { source_environment_id, target_environment_id } = input;
  const { workflow_id, run_id } = await readData(
    api.POST('/environments/{id}/clone', {
      params: { path: { id: source_environment_id } },
      body: { target_environment_id },
    }),
  );
  for (;;) {
    const run = await readData(
      api.GET('/workflows/{workflow_id}/{run_id}/summary', { params: { path: { workflow_id, run_id } } }),
    );
    if (run.status === 'Completed') return;
    if (run.status !== 'Running') throw new Error(run.error ? JSON.stringify(run.error) : run.status);
    await pause();
  }
}

async function copySubscription(input: YearInput, clock: ClockRecord, there: Elsewhere): Promise<string> {
  const { subscription, plan } = input;
  const { external_id, name, email } = await readData(
    api.GET('/customers/{id}', { params: { path: { id: subscription.customer_id } } }),
  );
  const customers = await readData(api.GET('/customers', { ...there }));
  const customer =
    customers.items?.find((each) => each.external_id === external_id) ??
    (await readData(api.POST('/customers', { body: { external_id, name, ...(email ? { email } : {}) }, ...there })));
  const existing = await readData(
    api.GET('/subscriptions', { params: { query: { customer_id: customer.id } }, ...there }),
  );
  if ((existing.items?.length ?? 0) > 0) return external_id;
  const plans = await readData(api.GET('/plans', { params: { query: { limit: 100 } }, ...there }));
  const copy = plans.items?.find((each) =>
    plan.lookup_key ? each.lookup_key === plan.lookup_key : each.name === plan.name,
  );
  if (!copy) throw new Error(`plan ${plan.name} was not copied`);
  await readData(
    api.POST('/subscriptions', {
      body: {
        customer_id: customer.id,
        plan_id: copy.id,
        currency: subscription.currency,
        billing_period: subscription.billing_period as 'MONTHLY',
        billing_period_count: subscription.billing_period_count ?? 1,
        billing_cycle: 'calendar',
        start_date: clock.frozen_time,
      },
      ...there,
    }),
  );
  return external_id;
}

async function copyEvents(
  { onStep, signal, event_names }: YearInput,
  external_customer_id: string,
  clock: ClockRecord,
  there: Elsewhere,
): Promise<void> {
  const events = await loadNewestEvents(external_customer_id, signal);
  const copies = repeatMonthly(
    events.filter(({ event_name }) => event_names.has(event_name)),
    new Date(clock.frozen_time),
  );
  onStep('events', String(copies.length));
  for (let at = 0; at < copies.length; at += BULK_MAX) {
    signal.throwIfAborted();
    // The copied events keep all digits of the numbers in their properties.
    const body = formatExact({ events: copies.slice(at, at + BULK_MAX) }) as never;
    await readData(
      api.POST('/events/bulk', { body, ...exactBody, headers: { ...there.headers, ...exactBody.headers } }),
    );
  }
}

async function loadNewestEvents(external_customer_id: string, signal: AbortSignal): Promise<CopiedEvent[]> {
  const found: CopiedEvent[] = [];
  let iter_last_key: string | undefined;
  do {
    const query = { external_customer_id, page_size: EVENT_PAGE_SIZE, ...(iter_last_key ? { iter_last_key } : {}) };
    const page = await readEvents(api.GET('/events', { params: { query }, signal, ...asEvents }));
    found.push(...(page.events as CopiedEvent[]));
    iter_last_key = page.has_more ? (page.iter_last_key ?? undefined) : undefined;
  } while (iter_last_key !== undefined && found.length < COPIED_EVENTS_MAX);
  return found;
}

async function advance(clock: ClockRecord, { months, onStep, signal }: YearInput, there: Elsewhere): Promise<void> {
  const params = { path: { id: clock.id } };
  const frozen_time = advanceTarget(clock.frozen_time, months);
  await readData(api.POST('/test-clocks/{id}/advance', { params, body: { frozen_time }, ...there }));
  for (;;) {
    const now = await readData(api.GET('/test-clocks/{id}', { params, ...there }));
    onStep('advance', now.frozen_time);
    if (now.test_clock_status === 'failed') throw new Error(now.failure?.message ?? now.test_clock_status);
    if (now.test_clock_status !== 'advancing') return;
    signal.throwIfAborted();
    await pause();
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
