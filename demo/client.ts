/** Client of the demo for the service. It uses only the public API. */
import { setTimeout as pause } from 'node:timers/promises';

export type DemoFields = Readonly<Record<string, unknown>>;

export class Client {
  readonly url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.url = url.replace(/\/+$/, '').replace(/\/v1$/, '');
    this.#key = key;
  }

  get<Answer>(path: string): Promise<Answer> {
    return this.#request<Answer>('GET', path) as Promise<Answer>;
  }

  post<Answer>(path: string, body: DemoFields = {}): Promise<Answer> {
    return this.#request<Answer>('POST', path, body) as Promise<Answer>;
  }

  /** Finds the record at this path; null if there is none. */
  find<Answer>(path: string): Promise<Answer | null> {
    return this.#request<Answer>('GET', path, undefined, { or_null: true });
  }

  /** Events have ids, so an unacknowledged batch is re-sent and counts once. */
  async sendEvents(events: readonly DemoFields[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.post('/events/bulk', { events });
        return;
      } catch (error) {
        const passing = !(error instanceof RejectedRequestError) || error.status === 503 || error.status === 429;
        if (!passing || attempt === 8) throw error;
        await pause(100 * 2 ** attempt);
      }
    }
  }

  async #request<Answer>(
    method: string,
    path: string,
    body?: DemoFields,
    { or_null = false } = {},
  ): Promise<Answer | null> {
    const response = await fetch(`${this.url}/v1${path}`, {
      method,
      headers: { 'x-api-key': this.#key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status === 404 && or_null) return null;
    if (!response.ok)
      throw new RejectedRequestError(response.status, `${method} ${path}: ${messageIn(text, response)}`);
    return JSON.parse(text) as Answer;
  }
}

export class RejectedRequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function messageIn(text: string, response: Response): string {
  try {
    const { message } = JSON.parse(text) as { message?: string };
    return `${response.status} ${message ?? text}`;
  } catch {
    return `${response.status} ${text.slice(0, 200)}`;
  }
}
