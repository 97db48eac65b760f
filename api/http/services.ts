/** Dependencies of the routes; built once in main.ts, passed to every request. */
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { ConsoleSource } from '../../process/console-source.ts';
import type { Stores } from '../../storage/foundation/stores.ts';

export type Services = Stores & {
  readonly config: Config;
  readonly logger: Logger;
  /** Clock of the process; tests and the demo move it. */
  readonly clock: () => Date;
  /** The console in the browser; absent if this process serves none. */
  readonly console?: ConsoleSource | undefined;
};
