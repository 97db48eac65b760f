/** Limits a tenant's calls that cost money, per clock hour and process. */
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';

export class HourlyLimit {
  readonly #max: number;
  #hour = 0;
  #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Counts one more call and returns true, unless the limit is reached. */
  tryAcquire(tenant_id: string, now: Date): boolean {
    const hour = Math.floor(now.getTime() / HOUR_MS);
    if (hour !== this.#hour) this.#taken = new Map();
    this.#hour = hour;
    const taken = this.#taken.get(tenant_id) ?? 0;
    if (taken >= this.#max) return false;
    this.#taken.set(tenant_id, taken + 1);
    return true;
  }
}
