/**
 * A world with a connection to Stripe's fake. The clocks of the service, of its machine, of the database and of Stripe
 * move together. `work` runs the jobs of the scheduler. Webhooks arrive twice, in an order chosen by the seed, some of
 * them months later.
 */
import { mock } from 'node:test';
import { expect } from 'chai';
import { readProvider } from '../../actions/delivery/inbound/read-provider.ts';
import { pushPending } from '../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import type { Finding } from '../../actions/operations/audit/findings.ts';
import { auditRecords } from '../../actions/operations/audit/records.ts';
import { listDueWork } from '../../actions/schedule/due-work.ts';
import { listConnectionsToRead } from '../../storage/queue/provider-events.ts';
import { moveDatabaseClock } from './moved-clock.ts';
import { StripeFake } from './providers/stripe-fake.ts';
import type { Chance } from './seeds.ts';
import { startWorld, type World } from './world.ts';

const SECRET = 'whsec_of_the_endpoint';
const SETTINGS_KEY = 'a key of the settings that has 32 characters';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Interval between requests at the limit of 25 requests per second (integrations/stripe/provider.ts). */
const PACE_MS = 40;
export const DUE_WORK: readonly string[] = [
  ...['bill-due-periods', 'end-unpaid-subscriptions', 'finalize-due-invoices', 'bill-late-usage', 'pursue-payments'],
  ...['tell-overdue-invoices', 'end-overdue-subscriptions', 'top-up-wallets'],
];

type StripeEvent = StripeFake['events'][number];

type StripeWorldParts = {
  readonly connection_id: string;
  readonly chance: Chance;
  readonly setDatabaseClock: (instant: Date) => Promise<void>;
};

export class StripeWorld {
  readonly world: World;
  readonly fake: StripeFake;
  readonly #connection_id: string;
  readonly #chance: Chance;
  readonly #setDatabaseClock: (instant: Date) => Promise<void>;
  /** Webhooks that are on their way, with the instant of their arrival. */
  readonly #webhooks: { at: number; event: StripeEvent }[] = [];
  #posted = 0;
  #keys_forgotten_at = 0;

  constructor(world: World, fake: StripeFake, { connection_id, chance, setDatabaseClock }: StripeWorldParts) {
    this.world = world;
    this.fake = fake;
    this.#connection_id = connection_id;
    this.#chance = chance;
    this.#setDatabaseClock = setDatabaseClock;
  }

  get now(): Date {
    return this.world.now;
  }

  /** Moves all clocks. Stripe forgets idempotency keys after a day. */
  async at(instant: Date): Promise<void> {
    mock.timers.setTime(instant.getTime());
    this.world.at(instant.toISOString());
    await this.#setDatabaseClock(instant);
    if (instant.getTime() - this.#keys_forgotten_at < DAY_MS) return;
    this.fake.forgetKeys();
    this.#keys_forgotten_at = instant.getTime();
  }

  /** Moves to `end` and works at random instants before it, chosen by the seed. */
  async passTo(end: Date, times: number): Promise<void> {
    const span = end.getTime() - this.now.getTime();
    const instants = Array.from({ length: times }, () => this.now.getTime() + this.#chance.next() * span);
    for (const instant of [...instants.sort((a, b) => a - b), end.getTime()]) {
      await this.at(new Date(instant));
      await this.work();
    }
  }

  /** Jobs run in any order. */
  async work(): Promise<void> {
    const jobs = [() => this.#doDueWork(), () => this.push(), () => this.#receive(), () => this.#read()];
    for (const job of this.#chance.shuffled(jobs)) await job();
  }

  async #doDueWork(): Promise<void> {
    const { services } = this.world.api;
    for (const { name, run } of listDueWork(services.config)) {
      if (!DUE_WORK.includes(name)) continue;
      const { failed } = await run(services, { now: this.now });
      expect(failed, name).to.deep.equal([]);
    }
  }

  async push(): Promise<void> {
    const { services, scope } = this.world.api;
    while ((await dispatchBatch(services, { has_targets: true, now: this.now })).dispatched > 0);
    await pushPending(services, scope, this.#run());
  }

  async #read(): Promise<void> {
    const { services, scope } = this.world.api;
    if ((await listConnectionsToRead(services.postgres, this.now)).length > 0)
      await readProvider(services, scope, this.#run());
  }

  #run() {
    const settings = { SECRETS_KEYS: [SETTINGS_KEY], PROVIDER_ADDRESSES: [`stripe=${this.fake.url.href}`] };
    const connection_id = this.#connection_id;
    return { connection_id, settings, clock: () => this.now, mayGoOn: async () => true };
  }

  /** Sends each event twice, each time after up to six hours or, in one of ten cases, after 20 to 90 days. */
  async #receive(): Promise<void> {
    for (const event of this.fake.events.slice(this.#posted))
      for (let times = 0; times < 2; times++) {
        const delay_ms =
          this.#chance.next() < 0.1 ? this.#chance.whole(20, 90) * DAY_MS : this.#chance.whole(0, 6) * HOUR_MS;
        this.#webhooks.push({ at: this.now.getTime() + delay_ms, event });
      }
    this.#posted = this.fake.events.length;
    const due = this.#webhooks.filter(({ at }) => at <= this.now.getTime());
    for (const one of this.#chance.shuffled(due)) {
      this.#webhooks.splice(this.#webhooks.indexOf(one), 1);
      await this.deliver(one.event);
    }
  }

  /** Delivers all webhooks that are on their way, while nothing new is billed or charged. */
  async receiveAll(): Promise<void> {
    while (this.#posted < this.fake.events.length || this.#webhooks.length > 0) {
      const arrivals = this.#webhooks.map(({ at }) => at);
      await this.at(new Date(Math.max(...arrivals, this.now.getTime() + HOUR_MS)));
      await this.#receive();
      await this.#read();
    }
    await this.push();
  }

  async deliver(event: StripeEvent): Promise<void> {
    const { tenant_id, environment_id } = this.world.api.scope;
    const url = `${this.world.api.url}/webhooks/stripe/${tenant_id}/${environment_id}`;
    expect(await this.fake.sendEvent(event, { url, secrets: [SECRET] })).to.equal(200);
  }

  /** Differences that the audit finds. */
  async audit(): Promise<string[]> {
    const { services } = this.world.api;
    const found: string[] = [];
    await auditRecords(
      services,
      {
        checks: new Set(['credits', 'invoices', 'uninvoiced', 'integrations'] as const),
        log: 'embedded',
        identityFiles: async () => [],
        chance: () => 0.5,
      },
      ({ kind, what }: Finding) => void found.push(`${kind}: ${what}`),
    );
    return found;
  }

  async stop(): Promise<void> {
    await this.world.stop();
    await this.fake.stop();
  }
}

/**
 * Sets the machine's clock to that of the world until the returned function is called. Each request at the provider advances
 * `performance.now` by PACE_MS, so that the request limit has recovered.
 */
export function holdMachineClock(now: string, countRequests: () => number, pace_ms = PACE_MS): () => void {
  mock.timers.enable({ apis: ['Date'], now: Date.parse(now) });
  const read = performance.now.bind(performance);
  performance.now = () => read() + countRequests() * pace_ms;
  return () => {
    mock.timers.reset();
    performance.now = read;
  };
}

export async function startStripeWorld(
  fake: StripeFake,
  { now, chance }: { now: string; chance: Chance },
): Promise<StripeWorld> {
  const config = { SECRETS_KEYS: SETTINGS_KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
  const world = await startWorld({ now, config });
  const setDatabaseClock = await moveDatabaseClock(world.api.services.postgres);
  await setDatabaseClock(new Date(now));
  const stripe = { secret_key: 'sk_test_fake', webhook_secret: SECRET };
  const { id } = await world.post<{ id: string }>('/connections', {
    ...{ name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } },
  });
  return new StripeWorld(world, fake, { connection_id: id, chance, setDatabaseClock });
}
