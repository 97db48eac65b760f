/** `npm start`: the whole service in one process tree, with the embedded stores unless URLs are configured. */
import { createConsoleLink } from './actions/operations/access/open-session.ts';
import { readConfig } from './config.ts';
import { startConsoleBuild } from './process/console-source.ts';
import { explain } from './process/explain.ts';
import { silenceQueueTraces } from './process/quiet-queue.ts';
import { type RunningService, startService } from './service.ts';

async function main(): Promise<void> {
  silenceQueueTraces();
  const config = readConfig();
  let ending = false;
  let running: RunningService | undefined;
  const end = async (code: number) => {
    if (ending) return;
    ending = true;
    const failure = await Promise.race([stopped(running), code === 0 ? never : patience(STOP_AFTER_DEATH_MS)]);
    if (failure !== undefined && code === 0) console.error(`farthing: not everything could be stopped: ${failure}`);
    process.exit(failure === undefined ? code : 1);
  };
  const interruption = new AbortController();
  const starting = startService(config, {
    ...(config.CONSOLE === 'off' ? {} : { startConsole: (logger) => startConsoleBuild({ logger }) }),
    interruption: interruption.signal,
    onDeath: (part, detail) => {
      if (ending) return;
      console.error(`farthing: ${part} ended unexpectedly (${detail}); stopping, the next start recovers`);
      void end(1);
    },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (ending) return;
      console.log(`farthing: ${signal}, draining …`);
      setTimeout(() => interruption.abort(), START_AFTER_SIGNAL_MS).unref();
      setTimeout(giveUp, STOP_WITHIN_MS).unref();
      void starting.then(
        () => end(0),
        () => end(interruption.signal.aborted ? 0 : 1),
      );
    });
  }
  try {
    running = await starting;
    console.log(welcome(running, await makeLink(running)));
  } catch (error) {
    if (interruption.signal.aborted) return; // The signal handler ends the process.
    throw error;
  }
}

/**
 * After a signal, a start in progress may complete, which is orderly. The time is bounded, because a part that it waits for may never come.
 */
const START_AFTER_SIGNAL_MS = 5_000;
/** The limit equals that of a single process (process/process.ts). */
const STOP_WITHIN_MS = 25_000;

function giveUp(): never {
  console.error(`farthing: not everything could be stopped within ${STOP_WITHIN_MS / 1000} s`);
  process.exit(1);
}

/** Without one of the stores an orderly shutdown is impossible. Processes left running notice the end of this one and end too. */
const STOP_AFTER_DEATH_MS = 2_000;
const never = new Promise<undefined>(() => {});

function patience(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined));
}

async function stopped(running: RunningService | undefined): Promise<string | undefined> {
  return running?.stop().then(
    () => undefined,
    (error: unknown) => explain(error),
  );
}

/**
 * Makes the one-time link that signs in the first user. With a configured key there is none: the output of such a service goes to logs, and the
 * key sets an email and a password by `PUT /v1/users/me`.
 */
async function makeLink({ services, first_user }: RunningService): Promise<string | null> {
  const { CONSOLE, BOOTSTRAP_API_KEY } = services.config;
  if (CONSOLE !== 'public' || BOOTSTRAP_API_KEY !== undefined) return null;
  return createConsoleLink(services, first_user, services.clock());
}

function welcome({ url, api_key, services }: RunningService, link_token: string | null): string {
  const { DOCS, CONSOLE, PUBLIC_URL, BOOTSTRAP_API_KEY } = services.config;
  const page = `${PUBLIC_URL ?? url}/`;
  // The operator knows a configured key, and the output of a service goes to logs, so the key is not printed.
  const isConfigured = BOOTSTRAP_API_KEY !== undefined;
  const shown = isConfigured ? null : api_key;
  const header = shown ? `'x-api-key: ${shown}'` : `"x-api-key: $${isConfigured ? 'BOOTSTRAP_API_KEY' : 'KEY'}"`;
  const event = '{"event_name":"api_call","external_customer_id":"acme","properties":{"tokens":"12"}}';
  return [
    `base URL   ${url}/v1`,
    isConfigured
      ? 'API key    as configured (BOOTSTRAP_API_KEY)'
      : shown === null
        ? 'API key    as shown at the first start (set BOOTSTRAP_API_KEY to add one)'
        : `API key    ${shown}   (shown once)`,
    ...(CONSOLE === 'public'
      ? [link_token === null ? `console    ${page}` : `console    ${page}#link=${link_token}   (once, within a day)`]
      : []),
    ...(DOCS === 'public' ? [`docs       ${url}/docs`] : []),
    `try        curl -s ${url}/v1/events -H ${header} -H 'content-type: application/json' -d '${event}'`,
    `farthing is ready at ${url}`,
  ].join('\n');
}

main().catch((error: unknown) => {
  console.error(`farthing: ${explain(error)}`);
  process.exit(1);
});
