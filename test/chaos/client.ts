/** A client that does not give up: what has no answer is asked again. It knows nothing of kills. */
import { setTimeout as pause } from 'node:timers/promises';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
export type Answer = { status: number; body: any };
export type Ask = (method: string, path: string, body?: unknown) => Promise<Answer>;

export class Client {
  failed = 0;
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Nothing when there was no answer, or one that says to come back later. */
  async try(method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    try {
      const answer = await this.#ask(method, path, body);
      if (answer.status < 500) return answer;
    } catch (error) {
      if (!isConnectionError(error)) throw error;
    }
    this.failed++;
    await pause(20);
    return undefined;
  }

  /** For what may be asked twice. */
  async untilAnswered(
    method: string,
    path: string,
    { body, statuses = [200] }: { body?: unknown; statuses?: readonly number[] } = {},
  ): Promise<Answer> {
    for (let tries = 0; ; tries++) {
      const answer = await this.try(method, path, body);
      if (answer && statuses.includes(answer.status)) return answer;
      if (answer) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(Math.min(500, 20 * (tries + 1)));
    }
  }

  /** Makes it once: `find` looks whether an earlier try, whose answer was lost, has made it. */
  async make<Made>(find: () => Promise<Made | undefined>, path: string, body: unknown): Promise<Made> {
    for (;;) {
      const found = await find();
      if (found) return found;
      const answer = await this.try('POST', path, body);
      if (!answer) continue;
      if (answer.status === 200 || answer.status === 201) return answer.body;
      // Another try of ours may have arrived meanwhile.
      if (answer.status !== 409) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  }
}

function isConnectionError(error: unknown): boolean {
  const { name, message } = error as Error;
  return (
    /TimeoutError|AbortError/.test(name) || (error instanceof TypeError && /fetch failed|terminated/.test(message))
  );
}
