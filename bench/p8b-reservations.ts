/**
 * P8b: durable, exact holds per second of one busy feature of one customer, each with its own key. The service decides concurrent holds in
 * one batch (actions/reservations/submit-reservation.ts). The usual way for comparison is a transaction per hold, which locks the pool with
 * FOR UPDATE, sums the holds and writes the row. Also measures the time of single checks, one after the other. `--holds=4000
 * --callers=100`.
 */
import { auditReservations } from '../actions/operations/audit/reservations.ts';
import { checkReservation as ask, type ReservationCheckResult } from '../actions/reservations/check.ts';
import { checkShape } from '../core/credits/reservations/request.ts';
import { Decimal } from '../core/foundation/decimal.ts';
import { createdBy } from '../core/foundation/stamp.ts';
import { newId } from '../storage/foundation/new-id.ts';
import { ReservationModel } from '../storage/models/reservations/reservation.ts';
import { startWorld, usage } from '../test/support/world.ts';
import { check, claim, fixed, flag, median, quantile, say } from './report.ts';

const MUST = 5;

export async function run(): Promise<void> {
  const size = { holds: flag('holds', 4000), callers: flag('callers', 100) };
  const world = await startWorld({ now: '2026-03-15T12:00:00Z' });
  try {
    const stores = world.api.services;
    const { scope } = world.api;
    const meter = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1')]);
    const feature = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
    const grant = { plan_id: world.id('plan Pro'), feature_id: feature.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...grant, usage_limit: size.holds });
    for (const customer of ['hot', 'usual', 'calm']) await world.subscribe(customer, 'Pro');
    const author = { user_id: 'user_1', now: world.now };
    const hold = (customer: string, idempotency_key: string): Promise<ReservationCheckResult> => {
      const about = { external_customer_id: customer, feature_id: feature.id, quantity: '1' };
      return ask(stores, scope, { request: checkShape.parse({ ...about, hold: {}, idempotency_key }), author });
    };

    const calm: number[] = [];
    for (let n = 0; n < 200; n++) {
      const began = performance.now();
      await hold('calm', `calm ${n}`);
      calm.push(performance.now() - began);
    }
    const together = await timed(size, async (n) => check((await hold('hot', `hot ${n}`)).allowed, 'it was refused'));
    const over = await hold('hot', 'over');
    check(!over.allowed && over.reason === 'limit_reached', 'more than there is was held');

    const [customer] = await stores.postgres('customers').where({ ...scope, external_id: 'usual' });
    const pool = { customer_id: customer.id, feature_id: feature.id };
    const rows = () => stores.postgres('reservations').where({ ...scope, ...pool });
    await hold('usual', 'makes the pool');
    const alone = await timed({ ...size, holds: size.holds - 1 }, (n) =>
      stores.postgres.transaction(async (transaction) => {
        await transaction('reservation_pools')
          .where({ ...scope, customer_id: customer.id })
          .forUpdate();
        const [{ sum }] = (await rows()
          .transacting(transaction)
          .where({ reservation_status: 'held' })
          .sum('quantity')) as [{ sum: string }];
        check(new Decimal(sum).plus('1').lte(size.holds), 'there is no room');
        const record = {
          ...pool,
          id: newId('reservation', author.now.getTime()),
          quantity: '1',
          reservation_status: 'held',
          reason: 'within_limit',
          on_expiry: 'release',
          expires_at: '2026-03-15T13:00:00Z',
          idempotency_key: `usual ${n}`,
          ...createdBy(author),
        };
        await ReservationModel.add(scope, record, { database: transaction });
      }),
    );
    let findings = 0;
    await auditReservations(stores, () => findings++);
    check(findings === 0, `the audit finds ${findings} differences`);
    say(`  a hold, one after the other: ${median(calm).toFixed(1)} ms, p99 ${quantile(calm, 0.99).toFixed(1)} ms`);
    say(
      `  ${size.holds} holds of ${size.callers} callers: together ${fixed(together)} a second, one by one ${fixed(alone)} (which reads no usage)`,
    );
    claim(
      'holds of a hot feature, against one FOR UPDATE each',
      `${fixed(together / alone)} ×`,
      `${MUST} ×`,
      together >= MUST * alone,
    );
  } finally {
    await world.stop();
  }
}

/** Holds per second. */
async function timed({ holds, callers }: { holds: number; callers: number }, one: (n: number) => Promise<unknown>) {
  let next = 0;
  const caller = async () => {
    while (next < holds) await one(next++);
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return holds / ((performance.now() - began) / 1000);
}
