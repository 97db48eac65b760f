// The output of `npm run <script> -- --help`. run.mjs imports it before anything is installed, so it is plain
// JavaScript.

const FILES = ['[file or folder …]', 'these tests alone'];
const MOCHA = ['-g <text>, --bail, …', 'any option of mocha'];

/** The effect of each script, and the meaning of its options. A script without options refuses every option. */
export const HELP = {
  start: { does: 'the whole service in one process; its settings are in .env.example' },
  demo: {
    does: 'the whole way from events to invoices, on a service of its own or, with FARTHING_URL and FARTHING_API_KEY, on a running one',
    options: [
      ['--file <usage.csv>', 'bills this file'],
      ['--rows <n>', 'how many calls are made up without a file (10000)'],
      ['--seed <n>', 'which ones (1)'],
    ],
  },
  dev: { does: 'npm start, again whenever a file changes' },
  api: { does: 'the HTTP interface alone; needs DATABASE_URL and CLICKHOUSE_URL' },
  pipeline: { does: 'the counting of events alone; needs DATABASE_URL and CLICKHOUSE_URL' },
  scheduler: { does: 'the jobs of the clock alone; needs DATABASE_URL and CLICKHOUSE_URL' },
  migrate: { does: 'brings DATABASE_URL and CLICKHOUSE_URL to the schema of this version' },
  audit: {
    does: 'checks that every accepted event is stored once, and the bucket rows with a recount of the raw events',
    options: [
      ['--check <name>', 'this check alone; may be repeated'],
      ['--tenant <id>', 'recounts this tenant alone'],
      ['--environment <id>', 'recounts this environment alone'],
      ['--meter <id>', 'recounts this meter alone'],
      ['--from <date>', 'recounts from here on'],
      ['--to <date>', 'recounts up to here'],
      ['--json', 'a line of JSON for each thing that is said'],
      ['--repair', 'writes rows that differ anew'],
      ['--stores', 'reads the files of exports in S3 as well'],
    ],
  },
  partitions: {
    does: 'gives the event log more partitions (docs/operations.md, "Partitions")',
    options: [['--to <n>', 'how many it then has']],
  },
  tenants: {
    does: 'lists the tenants, or makes or changes one (docs/operations.md, "Tenants")',
    options: [
      ['--create <name>', 'a new tenant, with --email of its first user'],
      ['--email <email>', 'of the user that --create makes'],
      ['--suspend <id>', 'the tenant can be read and not written'],
      ['--resume <id>', 'the end of that'],
      ['--new-password <email>', 'for a user who has lost it'],
    ],
  },
  console: { does: 'builds the console in the browser, if its build is missing or stale' },
  'verify-invoice': {
    does: 'checks an invoice by its proof and its events, without a service (docs/proof.md)',
    options: [
      ['<proof.json>', 'what GET /invoices/{id}/proof answered'],
      ['[events.ndjson]', 'what GET /invoices/{id}/proof/events answered, or events of your own'],
      ['--event <file>', 'what GET /invoices/{id}/proof/events/{event_id} answered: the event is in the proof'],
    ],
  },
  check: { does: 'format, lint, types and the tests of core, within seconds' },
  fix: { does: 'formats, sorts imports, applies what the linter can' },
  test: { does: 'the tests on the embedded stores', options: [FILES, MOCHA] },
  'test:product': { does: 'the tests of what a customer sees', options: [FILES, MOCHA] },
  'test:kafka': { does: 'the tests against a real Kafka; needs Java 17, Maven and Go', options: [FILES, MOCHA] },
  chaos: {
    does: 'kills processes at random moments and compares every number; prints its seeds',
    options: [
      ['--from-seed <n>', 'the first seed'],
      ['--seed <n>', 'the same'],
      ['--seeds <n>', 'how many, one after the other (1)'],
      ['--minutes <n>', 'how long each of them takes (1)'],
      ['--per-installation <n>', 'how many share one installation'],
      ['--kafka', 'on a real Kafka'],
    ],
  },
  bench: {
    does: 'the measurements; all but the long ones unless some are named',
    options: [
      ['[name …]', 'these alone; a wrong name lists them'],
      ['--<flag>=<value>', 'for the measurement, as its file in bench/ says'],
    ],
  },
  house: {
    does: 'measures names, comments, rooms and lines of the code; test/house.json holds what may only shrink',
    options: [
      ['--root <dir>', 'another checkout'],
      ['--list <figure>', 'lists the places that a figure counts'],
      ['--write', 'records smaller numbers in test/house.json'],
    ],
  },
};

export function formatHelp(name) {
  const { does, options = [] } = HELP[name];
  const command = `npm run ${name}${options.length > 0 ? ' -- [options]' : ''}`;
  const width = Math.max(0, ...options.map(([option]) => option.length));
  return [command, `  ${does}`, ...options.map(([option, means]) => `  ${option.padEnd(width)}   ${means}`)].join('\n');
}

/** Lists every script, each in one line. */
export function overview() {
  const width = Math.max(...Object.keys(HELP).map((name) => name.length));
  return Object.entries(HELP)
    .map(([name, { does }]) => `  npm run ${name.padEnd(width)}   ${does}`)
    .join('\n');
}

export function hasNoOptions(name) {
  return HELP[name].options === undefined;
}
