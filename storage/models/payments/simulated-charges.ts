/** Charges of the sandbox, a simulated provider. A real provider stores them in its own systems. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { newId } from '../../foundation/new-id.ts';
import type { Database } from '../../foundation/stores.ts';

type SimulatedChargeStatus = 'open' | 'succeeded' | 'failed' | 'cancelled';

type SimulatedChargeRow = {
  readonly id: string;
  readonly charge_status: SimulatedChargeStatus;
  readonly error: string | null;
  readonly payment_url: string | null;
  readonly ends_at: Date | null;
  readonly ends_as: 'succeeded' | 'failed' | null;
};

type SimulatedChargeInput = Omit<SimulatedChargeRow, 'id'> & {
  readonly key: string;
  readonly kind: string;
  readonly amount: string;
  readonly currency: string;
  readonly payment_method_id: string;
  readonly now: Date;
};

export class SimulatedChargeTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async enter(
    place: Scope,
    { key, now, ...entry }: SimulatedChargeInput,
  ): Promise<{ charge: SimulatedChargeRow; is_new: boolean }> {
    const row = { ...entry, id: newId('sandbox_charge', now.getTime()), idempotency_key: key, created_at: now };
    const entered: SimulatedChargeRow[] = await this.#table()
      .insert({ ...row, ...only(place) })
      .onConflict(['tenant_id', 'environment_id', 'idempotency_key'])
      .ignore()
      .returning('*');
    if (entered[0]) return { charge: asCharge(entered[0]), is_new: true };
    return { charge: (await this.find(place, { key }))!, is_new: false };
  }

  async find(place: Scope, by: { key: string } | { id: string }): Promise<SimulatedChargeRow | null> {
    const condition = 'key' in by ? { idempotency_key: by.key } : by;
    const [row]: SimulatedChargeRow[] = await this.#table().where({ ...only(place), ...condition });
    return row ? asCharge(row) : null;
  }

  async end(
    place: Scope,
    id: string,
    as: { charge_status: SimulatedChargeStatus; error: string | null },
  ): Promise<void> {
    await this.#table()
      .where({ ...only(place), id, charge_status: 'open' })
      .update({ ...as, payment_url: null });
  }

  async refund(place: Scope, { id, key, amount }: { id: string; key: string; amount: string }): Promise<boolean> {
    const mine = () => this.#table().where({ ...only(place), id, charge_status: 'succeeded' });
    const given: number = await mine()
      .whereRaw('refunded + ? <= amount and ? <> all(refund_keys)', [amount, key])
      .update({
        refunded: this.#database.raw('refunded + ?', [amount]),
        refund_keys: this.#database.raw('array_append(refund_keys, ?)', [key]),
      });
    if (given > 0) return true;
    const before: unknown[] = await mine().whereRaw('? = any(refund_keys)', [key]).select('id');
    return before.length > 0;
  }

  #table() {
    return this.#database('sandbox_charges');
  }
}

function only({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}

/** Converts a row: the driver returns instants as text. */
function asCharge({ ends_at, ...row }: SimulatedChargeRow): SimulatedChargeRow {
  return { ...row, ends_at: ends_at && new Date(toInstant(ends_at as unknown as string)) };
}
