// docker-compose.yml, read by the parser of the compose specification itself, against config.ts and .env.example:
// whoever starts the stores alone and copies .env.example must reach them, with nothing to edit.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../config.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PARSER = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2';
const PROCESSES = ['api', 'pipeline', 'scheduler'];
const STORES = ['postgres', 'clickhouse', 'kafka'];

/** What is for the processes to know, and the compose file passes on; the others say where things are in it. */
const OWN = ['HOST', 'PORT', 'INTERNAL_PORT', 'DATA_DIR', 'DATABASE_URL', 'CLICKHOUSE_URL', 'KAFKA_BROKERS'];
/** Those whose default is another one in it: whoever looks at a container wants to see something, needs a key, and comes through its balancer. */
const OTHER_DEFAULT = ['LOG_LEVEL', 'BOOTSTRAP_API_KEY', 'TRUSTED_PROXIES'];
const FORWARDED = Object.keys(exampleSettings()).filter((name) => ![...OWN, ...OTHER_DEFAULT].includes(name));

type Service = {
  image: string;
  command?: string[];
  environment: Record<string, string>;
  ports?: { host_ip?: string; published: string; target: number }[];
  healthcheck: { test?: string[]; disable?: boolean };
  depends_on?: Record<string, { condition: string }>;
  volumes?: { source?: string; target: string; type: string }[];
  logging?: { driver: string; options: Record<string, string> };
  deploy?: { resources: { limits: { memory: string } } };
};

describe('docker-compose.yml', function () {
  this.timeout(300_000); // The first run compiles the parser.
  let services: Record<string, Service>;
  let written: Record<string, Service>;
  const service = (name: string): Service => {
    const found = services[name];
    if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
    return found;
  };

  before(() => {
    services = resolvedServices();
    written = resolvedServices('-no-interpolation');
  });

  it('has the three stores, the three processes, the migration, and a balancer in front', () => {
    expect(Object.keys(services)).to.have.members([...STORES, ...PROCESSES, 'migrate', 'balancer']);
  });

  for (const name of [...PROCESSES, 'migrate']) {
    it(`${name} runs a file that exists, with settings that config.ts accepts and .env.example lists`, () => {
      const { command, environment } = service(name);
      expect(existsSync(join(ROOT, command?.at(-1) ?? '')), `${command?.at(-1)} exists`).to.equal(true);
      const config: Record<string, unknown> = readConfig(environment);
      const listed = exampleSettings();
      for (const variable of Object.keys(environment)) {
        // Empty is unset.
        expect(String(config[variable] ?? ''), `${variable} as config.ts reads it`).to.equal(
          String(environment[variable]),
        );
        expect(listed, '.env.example').to.have.property(variable);
      }
    });

    it(`${name} is given every setting, by default the one of config.ts`, () => {
      const { environment } = service(name);
      expect(Object.keys(environment)).to.have.members(Object.keys(exampleSettings()));
      const defaults: Record<string, unknown> = readConfig({});
      for (const variable of FORWARDED)
        expect(String(environment[variable]), variable).to.equal(String(defaults[variable] ?? ''));
    });

    it(`${name} is given the settings of the environment, and else the default`, () => {
      for (const variable of FORWARDED) {
        const shown = service(name).environment[variable];
        expect(written[name]?.environment[variable]).to.equal(`\${${variable}:-${shown}}`);
      }
    });

    it(`${name} waits for healthy stores${name === 'migrate' ? '' : ' and the migration'}`, () => {
      const healthy = STORES.map((store) => [store, 'service_healthy']);
      const migrated = name === 'migrate' ? [] : [['migrate', 'service_completed_successfully']];
      const waits = Object.entries(service(name).depends_on ?? {}).map(([other, { condition }]) => [other, condition]);
      expect(waits).to.have.deep.members([...healthy, ...migrated]);
    });

    it(`${name} reaches each store by its name in the network`, () => {
      const { DATABASE_URL, CLICKHOUSE_URL, KAFKA_BROKERS } = service(name).environment;
      expect(new URL(DATABASE_URL ?? '').host).to.equal('postgres:5432');
      expect(new URL(CLICKHOUSE_URL ?? '').host).to.equal('clickhouse:8123');
      expect(KAFKA_BROKERS).to.equal('kafka:9092');
    });
  }

  it('publishes the ports of .env.example, on loopback only', () => {
    const example = exampleSettings();
    expect(published(service('balancer'))).to.equal(`127.0.0.1:${example.PORT}`);
    expect(published(service('postgres'))).to.equal(`127.0.0.1:${new URL(example.DATABASE_URL ?? '').port}`);
    expect(published(service('clickhouse'))).to.equal(`127.0.0.1:${new URL(example.CLICKHOUSE_URL ?? '').port}`);
    expect(published(service('kafka'))).to.equal(`127.0.0.1:${example.KAFKA_BROKERS?.split(':')[1]}`);
    const balancer = readFileSync(join(ROOT, 'ops', 'haproxy.cfg'), 'utf8');
    expect(balancer).to.include(`bind :${service('balancer').ports?.[0]?.target}`);
    expect(balancer, 'the port inside').to.include(` api:${service('api').environment.PORT}`);
  });

  it('lets any number of each process run: none has a port or a name of its own', () => {
    for (const name of PROCESSES) expect(service(name)).to.not.have.any.keys('ports', 'container_name');
  });

  it('bounds the memory and the log of every container', () => {
    for (const [name, { deploy, logging }] of Object.entries(services)) {
      expect(deploy?.resources.limits.memory, name).to.match(/^\d+[mg]$/);
      expect(logging?.options, name).to.include.all.keys('max-size', 'max-file');
    }
  });

  it('keeps the identity files of each worker in a volume of its own', () => {
    const { volumes = [], environment } = service('pipeline');
    expect(volumes.map(({ type, source, target }) => [type, source, target])).to.deep.equal([
      ['volume', undefined, environment.DATA_DIR],
    ]);
  });

  it('has one volume for exports, of all that write and read them', () => {
    for (const name of ['api', 'scheduler'])
      expect(service(name).volumes?.map(({ type, source, target }) => [type, source, target])).to.deep.equal([
        ['volume', 'exports', '/exports'],
      ]);
    expect(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')).to.match(/install -d -o node -g node .*\/exports\b/);
  });

  for (const variable of ['DATABASE_URL', 'CLICKHOUSE_URL'] as const) {
    it(`gives ${variable} the user, password and database of .env.example and of the store`, () => {
      const inside = new URL(service('api').environment[variable] ?? '');
      const outside = new URL(exampleSettings()[variable] ?? '');
      const [store, prefix] = variable === 'DATABASE_URL' ? ['postgres', 'POSTGRES'] : ['clickhouse', 'CLICKHOUSE'];
      const own = service(store as string).environment;
      const expected = [own[`${prefix}_USER`], own[`${prefix}_PASSWORD`], `/${own[`${prefix}_DB`]}`];
      expect([inside.username, inside.password, inside.pathname]).to.deep.equal(expected);
      expect([outside.username, outside.password, outside.pathname]).to.deep.equal(expected);
    });
  }

  it('lets clients come back to Kafka under the name by which they came', () => {
    const advertised = service('kafka').environment.KAFKA_ADVERTISED_LISTENERS?.split(',') ?? [];
    const addresses = advertised.map((each) => each.replace(/^\w+:\/\//, ''));
    expect(addresses).to.have.members([service('api').environment.KAFKA_BROKERS, exampleSettings().KAFKA_BROKERS]);
  });

  for (const name of STORES) {
    it(`pins ${name} to a version, asks for its health and keeps its data in a volume`, () => {
      expect(service(name).image).to.match(/:\d+\.\d+/);
      expect(service(name).healthcheck.test).to.be.an('array').that.is.not.empty;
      expect(service(name).volumes?.map(({ source }) => source)).to.deep.equal([`${name}-data`]);
    });
  }

  it('lets Postgres be used by two of each process at once, with all of their connections', () => {
    // docs/operations.md, "Connections to Postgres".
    const [, , setting] = service('postgres').command!;
    expect(Number(setting?.replace('max_connections=', ''))).to.be.at.least(2 * (31 + 30 + 58) + 12);
  });

  it('asks each process whether it is ready', () => {
    for (const name of PROCESSES) expect(service(name).healthcheck.test?.join(' ')).to.include(':8080/ready');
  });
});

// Empty means unset to the file's defaults, and the environment goes before a local .env: the answer is the same anywhere.
function resolvedServices(...options: string[]): Record<string, Service> {
  const unset = ['POSTGRES_PASSWORD', 'CLICKHOUSE_PASSWORD', ...Object.keys(exampleSettings())];
  const env = { ...process.env, ...Object.fromEntries(unset.map((name) => [name, ''])) };
  const run = spawnSync('go', ['run', PARSER, '-format', 'json', ...options, 'docker-compose.yml'], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
  });
  if (run.error) {
    throw new Error('Go was not found. It runs the parser of docker-compose.yml: install it from https://go.dev/dl/.');
  }
  if (run.status !== 0) throw new Error(`docker-compose.yml is not accepted by ${PARSER}:\n${run.stderr}${run.stdout}`);
  return JSON.parse(run.stdout).services;
}

// NAME=value, also where it is commented out: the embedded stores are the default, and the addresses stand there as hints.
function exampleSettings(): Record<string, string> {
  const text = readFileSync(join(ROOT, '.env.example'), 'utf8');
  const settings = [...text.matchAll(/^(?:#\s*)?([A-Z][A-Z_]*)=(\S*)/gm)];
  return Object.fromEntries(settings.map(([, name, value]) => [name, value]));
}

function published({ ports = [] }: Service): string {
  return ports.map(({ host_ip, published: port }) => `${host_ip}:${port}`).join();
}
