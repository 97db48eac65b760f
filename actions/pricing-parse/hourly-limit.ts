/** How often a tenant may do something that costs money, per hour of the clock and in this process. */
const HOUR_MS = 3_600_000;

export class HourlyLimit {
  readonly #max: number;
  #hour = 0;
  #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether it may do so once more. */
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
