/** What routes work with; built once in main.ts, given to every request. */
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Stores } from '../storage/stores.ts';

export type Services = Stores & {
  readonly config: Config;
  readonly logger: Logger;
  /** The clock of the entrance; tests and the demo move it. */
  readonly clock: () => Date;
};
