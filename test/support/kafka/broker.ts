// A real Apache Kafka 4 (KRaft) on loopback for the tests: one broker or three, from Maven artifacts, no container needed.
//
//   node --import ./process/typescript.mjs test/support/kafka/broker.ts start [--brokers 3] [--port 9092] [--dir DIR]
//
// prints KAFKA_BROKERS=… and stays in the foreground until Ctrl-C or the end of its parent. Meanwhile it obeys lines on its
// standard input: kill [ID] · restart [ID] · pause [ID] · resume [ID] · status · stop · wipe.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { ensureJars, type JavaServer } from '../jars.ts';
import { type Leash, newLeash } from './leash.ts';
import { brokerAddress, brokerIds, freePorts, type Layout, serverProperties } from './settings.ts';

const BROKER: JavaServer = {
  name: 'kafka',
  pom: join(import.meta.dirname, 'pom.xml'),
  what: 'A Kafka broker',
  instead: 'or set KAFKA_BROKERS to the address of a Kafka that already runs',
};
const READY = 'Kafka Server started';
const READY_WITHIN_MS = 90_000;
const STOPPED_WITHIN_MS = 20_000;
/** Options of the JVM. A broker runs for a minute, so the second JIT compiler, which takes a third of a start, is not worth its work. */
const JVM = ['-Xms96m', '-Xmx320m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

type KafkaOptions = { brokers?: number; dir?: string; port?: number };

/** Every method acts on all brokers, or on the one with the given id (1, 2, 3). */
export type TestKafka = {
  brokers: string;
  /** kill -9; returns when the process is gone. */
  kill(id?: number): Promise<void>;
  /** Starts the brokers that are not running, on the same data and ports; returns when they serve requests. */
  restart(id?: number): Promise<void>;
  /**
   * SIGSTOP: the broker keeps its connections and answers nothing, like a machine that hangs. Returns when it has
   * stopped.
   */
  pause(id?: number): Promise<void>;
  resume(id?: number): void;
  status(): string;
  /** Stops cleanly; the data stays. */
  stop(): Promise<void>;
  /** Stops and deletes the data. */
  wipe(): Promise<void>;
};

type Broker = { id: number; dir: string; process?: ChildProcess };
type Cluster = { dir: string; jars: string; layout: Layout; brokers: Broker[]; leash?: Leash };

/** Starts a cluster, or starts it again on the data that an earlier one left in `dir`. */
export async function startKafka(options: KafkaOptions = {}): Promise<TestKafka> {
  const { brokers: size = 1 } = options;
  if (size !== 1 && size !== 3) throw new Error(`A test cluster has one broker or three, not ${size}.`);
  const jars = ensureJars(BROKER);
  const dir = resolve(options.dir ?? mkdtempSync(join(tmpdir(), 'farthing-kafka-')));
  const layout = knownLayout(dir, options) ?? (await formatCluster(dir, jars, options));
  const brokers = brokerIds(layout).map((id) => ({ id, dir: brokerDir(dir, id) }));
  const cluster: Cluster = { dir, jars, layout, brokers };
  try {
    await launch(cluster, brokers);
  } catch (error) {
    await stop(cluster);
    throw error;
  }
  return verbs(cluster);
}

function verbs(cluster: Cluster): TestKafka {
  const { brokers, layout } = cluster;
  const chosen = (id?: number) => (id === undefined ? brokers : [brokerOf(cluster, id)]);
  return {
    brokers: brokers.map(({ id }) => brokerAddress(layout, id)).join(','),
    kill: async (id) => void (await Promise.all(chosen(id).map((each) => end(each, 'SIGKILL')))),
    restart: (id) => launch(cluster, chosen(id)),
    pause: async (id) => void (await Promise.all(chosen(id).map(standStill))),
    resume: (id) => chosen(id).forEach((each) => signal(each, 'SIGCONT')),
    status: () => brokers.map((each) => `broker ${each.id}: ${runs(each) ? 'runs' : 'does not run'}`).join('\n'),
    stop: () => stop(cluster),
    wipe: async () => {
      await stop(cluster);
      rmSync(cluster.dir, { recursive: true, force: true });
    },
  };
}

function brokerOf({ brokers }: Cluster, id: number): Broker {
  const broker = brokers.find((each) => each.id === id);
  if (broker === undefined) throw new Error(`There is no broker ${id}; the cluster has ${brokers.length}.`);
  return broker;
}

const brokerDir = (dir: string, id: number) => join(dir, `broker-${id}`);
const layoutFile = (dir: string) => join(dir, 'layout.json');

// The ports are part of the data (the quorum's voters are stored by address), so a second start may not choose others.
function knownLayout(dir: string, asked: KafkaOptions): Layout | undefined {
  if (!existsSync(layoutFile(dir))) return undefined;
  const known = JSON.parse(readFileSync(layoutFile(dir), 'utf8')) as Layout;
  for (const name of ['brokers', 'port'] as const) {
    if (asked[name] === undefined || asked[name] === known[name]) continue;
    throw new Error(
      `${dir} holds a cluster with ${name}=${known[name]}, not ${asked[name]}: wipe it or choose another dir.`,
    );
  }
  return known;
}

async function formatCluster(dir: string, jars: string, asked: KafkaOptions): Promise<Layout> {
  const brokers = asked.brokers ?? 1;
  const layout = { brokers, port: asked.port ?? (await freePorts(2 * brokers)) };
  const clusterId = newClusterId();
  await Promise.all(
    brokerIds(layout).map((id) => formatBroker({ layout, id, dir: brokerDir(dir, id), jars, clusterId })),
  );
  // The layout is written last: a directory without it was not formatted completely.
  writeFileSync(layoutFile(dir), JSON.stringify(layout));
  return layout;
}

// Kafka's identifiers are 16 bytes in base64url; one that begins with a dash would be read as an option.
function newClusterId(): string {
  const id = randomBytes(16).toString('base64url');
  return id.startsWith('-') ? newClusterId() : id;
}

type Format = { layout: Layout; id: number; dir: string; jars: string; clusterId: string };

async function formatBroker({ layout, id, dir, jars, clusterId }: Format): Promise<void> {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const settings = join(dir, 'server.properties');
  writeFileSync(settings, serverProperties(layout, id, dir));
  const format = ['kafka.tools.StorageTool', 'format', '--cluster-id', clusterId, '--config', settings];
  await promisify(execFile)('java', javaArguments(jars, format));
}

function javaArguments(jars: string, main: string[], flags = sharedClasses(jars)): string[] {
  const logging = `-Dlog4j2.configurationFile=${join(import.meta.dirname, 'log4j2.xml')}`;
  return [...JVM, ...flags, logging, '-cp', join(jars, '*'), ...main];
}

/**
 * Archive of loaded classes, beside the jars. The first broker that ends writes it. Later brokers map it instead of
 * loading each class, which would take half of a start. A different JVM ignores it.
 */
const classesOf = (jars: string) => `${jars}.jsa`;
function sharedClasses(jars: string): string[] {
  return existsSync(classesOf(jars)) ? [`-XX:SharedArchiveFile=${classesOf(jars)}`] : [];
}

/** Exit code of a JVM that ends in order after SIGTERM. */
const ENDED_BY_SIGTERM = 143;

// The archive is copied and then renamed, so no broker maps an incomplete file.
function keepClasses(left: string, classes: string): void {
  if (!existsSync(left)) return;
  const fresh = `${classes}.${process.pid}`;
  copyFileSync(left, fresh);
  renameSync(fresh, classes);
  rmSync(left);
}

// All brokers are spawned before any is awaited: a single controller has no quorum and never becomes ready.
async function launch(cluster: Cluster, chosen: Broker[]): Promise<void> {
  const ready = chosen.filter((each) => !runs(each)).map((each) => spawnBroker(cluster, each));
  cluster.leash ??= newLeash();
  tellLeash(cluster);
  await Promise.all(ready);
}

// Sends the process ids of the running brokers to the leash (leash.ts). It is called after every start and end of a broker, because the
// operating system may soon give an old process id to another process.
function tellLeash({ brokers, leash }: Cluster): void {
  leash?.hold(brokers.filter(runs).flatMap((each) => each.process?.pid ?? []));
}

function spawnBroker(cluster: Cluster, broker: Broker): Promise<void> {
  const main = ['kafka.Kafka', join(broker.dir, 'server.properties')];
  const flags = sharedClasses(cluster.jars);
  const left = flags.length === 0 && broker.id === 1 ? `${broker.dir}.jsa` : undefined;
  if (left !== undefined) flags.push(`-XX:ArchiveClassesAtExit=${left}`);
  const child = spawn('java', javaArguments(cluster.jars, main, flags), { stdio: ['ignore', 'pipe', 'pipe'] });
  broker.process = child;
  const log = createWriteStream(join(broker.dir, 'broker.log'), { flags: 'a' });
  const lines: string[] = [];
  return new Promise((done, failed) => {
    const fail = (why: string) => {
      clearTimeout(deadline);
      failed(new Error(`Broker ${broker.id} ${why}. Its last words:\n${lines.slice(-20).join('\n')}`));
    };
    const deadline = setTimeout(() => fail(`was not ready within ${READY_WITHIN_MS / 1000} s`), READY_WITHIN_MS);
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        log.write(`${line}\n`);
        lines.push(line);
        if (lines.length > 200) lines.splice(0, 100);
        if (!line.includes(READY)) return;
        clearTimeout(deadline);
        done();
      });
    }
    child.once('exit', (code) => {
      if (left !== undefined && code === ENDED_BY_SIGTERM) keepClasses(left, classesOf(cluster.jars));
    });
    child.once('error', (error) => fail(`could not be started: ${error.message}`));
    child.once('close', (code, by) => {
      log.end();
      tellLeash(cluster);
      fail(`ended (${by ?? `exit code ${code}`})`);
    });
  });
}

function runs({ process: child }: Broker): boolean {
  return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

function signal(broker: Broker, name: NodeJS.Signals): void {
  if (runs(broker)) broker.process?.kill(name);
}

// SIGSTOP takes effect with a delay: a thread on another core may answer one more request.
async function standStill(broker: Broker): Promise<void> {
  signal(broker, 'SIGSTOP');
  while (runs(broker) && !(await isStopped(broker.process!.pid!))) await pause(5);
}

async function isStopped(pid: number): Promise<boolean> {
  const eachThread = process.platform === 'linux' ? ['-L'] : [];
  const { stdout } = await promisify(execFile)('ps', [...eachThread, '-o', 'state=', '-p', String(pid)]);
  return stdout
    .trim()
    .split(/\s+/)
    .every((state) => state.startsWith('T'));
}

async function end(broker: Broker, name: NodeJS.Signals): Promise<void> {
  if (!runs(broker) || broker.process === undefined) return;
  const gone = once(broker.process, 'exit');
  signal(broker, name);
  await gone;
}

// The last of three brokers cannot hand over its partitions and would wait, so it is killed after a timeout.
async function stop(cluster: Cluster): Promise<void> {
  const impatient = setTimeout(() => cluster.brokers.forEach((each) => signal(each, 'SIGKILL')), STOPPED_WITHIN_MS);
  for (const each of cluster.brokers) signal(each, 'SIGCONT');
  await Promise.all(cluster.brokers.map((each) => end(each, 'SIGTERM')));
  clearTimeout(impatient);
  const { leash } = cluster;
  cluster.leash = undefined;
  await leash?.release();
}

if (process.argv[1] === import.meta.filename) await main();

async function main(): Promise<void> {
  const texts = { brokers: { type: 'string' }, port: { type: 'string' }, dir: { type: 'string' } } as const;
  const { values, positionals } = parseArgs({ options: texts, allowPositionals: true });
  if (positionals.join() !== 'start') {
    console.error('Usage: broker.ts start [--brokers 1|3] [--port PORT] [--dir DIR]');
    process.exit(2);
  }
  const kafka = await startKafka({
    dir: values.dir,
    brokers: values.brokers === undefined ? undefined : Number(values.brokers),
    port: values.port === undefined ? undefined : Number(values.port),
  }).catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
  console.log(`KAFKA_BROKERS=${kafka.brokers}`);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => void stopAndLeave(kafka));
  for await (const line of createInterface(process.stdin)) await obey(kafka, line);
}

async function stopAndLeave(kafka: TestKafka): Promise<void> {
  await kafka.stop();
  process.stdin.destroy();
}

async function obey(kafka: TestKafka, line: string): Promise<void> {
  const [verb = '', id] = line.trim().split(/\s+/);
  const which = id === undefined ? undefined : Number(id);
  try {
    if (verb === 'status') return console.log(kafka.status());
    if (!/^(kill|restart|pause|resume|stop|wipe)$/.test(verb)) throw new Error(`There is no verb "${verb}".`);
    await kafka[verb as 'kill' | 'restart' | 'pause' | 'resume' | 'stop' | 'wipe'](which);
    console.log(`${verb}: done`);
    if (verb === 'stop' || verb === 'wipe') process.stdin.destroy();
  } catch (error) {
    console.error((error as Error).message);
  }
}
