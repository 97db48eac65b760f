/** A client that does not give up: what has no answer is asked again. It knows nothing of kills. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AnswerTo, BodyFrom, SomeAnswer } from '../support/answers.ts';

export type Answer<Body = SomeAnswer> = { status: number; body: Body };
export type Ask = <Method extends string, Path extends string>(
  method: Method,
  path: Path,
  body?: unknown,
) => Promise<Answer<BodyFrom<Method, Path>>>;

export class Client {
  failed = 0;
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Nothing when there was no answer, or one that says to come back later. */
  async try<Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body?: unknown,
  ): Promise<Answer<BodyFrom<Method, Path>> | undefined> {
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
  async untilAnswered<Method extends string, Path extends string>(
    method: Method,
    path: Path,
    { body, statuses = [200] }: { body?: unknown; statuses?: readonly number[] } = {},
  ): Promise<Answer<AnswerTo<Method, Path>>> {
    for (let tries = 0; ; tries++) {
      const answer = await this.try(method, path, body);
      if (answer && statuses.includes(answer.status)) return answer as Answer<AnswerTo<Method, Path>>;
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
      if (answer.status === 200 || answer.status === 201) return answer.body as Made;
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
