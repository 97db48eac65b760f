/**
 * Transactions at Paddle, which are invoices and payment pages. A transaction that this service created has our id in
 * its `custom_data`, by which a repeated request finds it.
 */
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
import type { ExactJson } from '../exact-json.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import type { PaddleClient } from './client.ts';
import { checkCustomerId, isPaddleId, type PaddleTransaction } from './records.ts';

/** Maximum page size of a list of transactions. */
const PAGE = '30';
/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_MS = HOUR_MS;

/** Statuses of a transaction that was not canceled, the most advanced first. */
const LIVE_STATUSES: readonly string[] = ['completed', 'paid', 'past_due', 'billed', 'ready', 'draft'];

export type SearchedTransaction = {
  /** Field of `custom_data` and its value, which no other record of ours has. */
  readonly field: 'farthing_invoice_id' | 'farthing_payment_key';
  readonly value: string;
  readonly customer_id: string;
  /** Time before the first request that may have created it. */
  readonly since: Date;
};

export class PaddleTransactions {
  readonly #client: PaddleClient;

  constructor(client: PaddleClient) {
    this.#client = client;
  }

  async find(id: string): Promise<PaddleTransaction | null> {
    return isPaddleId(id, 'txn') ? await this.#client.find<PaddleTransaction>(`transactions/${id}`) : null;
  }

  /** Lists the transactions with our id that are not canceled, the most advanced first. */
  async listLive(searched: SearchedTransaction): Promise<PaddleTransaction[]> {
    const found = await this.list(searched);
    return found.filter(({ status }) => status !== 'canceled');
  }

  /** Finds the transaction of an earlier request. Further ones that can be paid, which interrupted concurrent requests have left, are canceled. */
  async findLive(searched: SearchedTransaction): Promise<PaddleTransaction | null> {
    const [found = null, ...others] = await this.listLive(searched);
    for (const other of others) if (other.status !== 'paid' && !hasEnded(other)) await this.cancel(other);
    return found;
  }

  /** Lists the transactions with our id, canceled ones last. */
  async list({ field, value, customer_id, since }: SearchedTransaction): Promise<PaddleTransaction[]> {
    checkCustomerId(customer_id);
    const parameters = {
      customer_id,
      'created_at[GTE]': new Date(since.getTime() - CLOCK_SLACK_MS).toISOString(),
      per_page: PAGE,
    };
    const all = await this.#client.list<PaddleTransaction>('transactions', parameters);
    return all
      .filter(({ custom_data }) => custom_data?.[field] === value)
      .toSorted((a, b) => rankStatus(a) - rankStatus(b) || (a.id < b.id ? -1 : 1));
  }

  /**
   * Creates a transaction. If a concurrent request also has one, this request cancels its own and is repeated, so that
   * only one can be paid.
   */
  async create(searched: SearchedTransaction, body: Readonly<Record<string, ExactJson | undefined>>) {
    const created = await this.#client.create<PaddleTransaction>('transactions', body);
    const live = await this.listLive(searched);
    if (live.every(({ id }) => id === created.id)) return created;
    await this.cancel(created);
    throw new ProviderError('wait', `${searched.value} was sent to Paddle twice at once: one attempt is repeated`);
  }

  /** Issues the invoice. A concurrent request or a person may have issued or canceled it already. */
  async bill({ id }: PaddleTransaction): Promise<PaddleTransaction> {
    try {
      return await this.#client.update<PaddleTransaction>(`transactions/${id}`, { status: 'billed' });
    } catch (error) {
      const current = isRefused(error) ? await this.find(id) : null;
      if (current === null || current.status === 'ready' || current.status === 'draft') throw error;
      if (current.status !== 'canceled') return current;
      throw new ProviderError('wait', `${id} was canceled at Paddle while it was issued`);
    }
  }

  /** Cancels the transaction, so that it can no longer be paid; no effect if it has ended. */
  async cancel({ id }: Pick<PaddleTransaction, 'id'>): Promise<void> {
    try {
      await this.#client.update(`transactions/${id}`, { status: 'canceled' });
    } catch (error) {
      const current = isRefused(error) ? await this.find(id) : null;
      if (current === null || !hasEnded(current)) throw error;
    }
  }
}

/** Whether the transaction is paid or canceled for good. */
export function hasEnded({ status }: PaddleTransaction): boolean {
  return status === 'completed' || status === 'canceled';
}

function rankStatus({ status }: PaddleTransaction): number {
  const rank = LIVE_STATUSES.indexOf(status);
  return rank === -1 ? LIVE_STATUSES.length : rank;
}
