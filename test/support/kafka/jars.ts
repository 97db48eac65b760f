// Finds Java and Maven, and fetches the jars of one Kafka broker once per version and machine.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const JAVA_AT_LEAST = 17;
const POM = join(import.meta.dirname, 'pom.xml');
const OR_ELSE = 'or set KAFKA_BROKERS to the address of a Kafka that already runs';

/** The directory of the broker's jars; asks Maven for them when they are not there yet. */
export function brokerJars(): string {
  requireJava();
  const jars = join(homedir(), '.cache', 'farthing', `kafka-${pinnedVersion()}`);
  if (!existsSync(jars)) fetchJars(jars);
  return jars;
}

function requireJava(): void {
  const asked = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const how = `install one (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk), ${OR_ELSE}`;
  if (asked.error)
    throw new Error(`A Kafka broker needs Java ${JAVA_AT_LEAST} or newer, and "java" was not found: ${how}.`);
  const answer = asked.stderr + asked.stdout;
  const major = Number(/version "(\d+)/.exec(answer)?.[1]);
  if (major >= JAVA_AT_LEAST) return;
  throw new Error(
    `A Kafka broker needs Java ${JAVA_AT_LEAST} or newer; "java -version" says: ${answer.trim()}\nPlease ${how}.`,
  );
}

function pinnedVersion(): string {
  const version = /<kafka\.version>([^<]+)</.exec(readFileSync(POM, 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${POM} names no kafka.version.`);
  return version;
}

// Copies next to the final place and renames, so that an interrupted fetch, or two at once, never leave half a set.
function fetchJars(jars: string): void {
  const fresh = `${jars}.${process.pid}`;
  mkdirSync(dirname(jars), { recursive: true });
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${fresh}`];
  const mvn = spawnSync('mvn', ['-q', '-B', '-f', POM, ...goal], { encoding: 'utf8' });
  if (mvn.error) {
    const how = `install it (Debian: apt-get install maven; macOS: brew install maven), ${OR_ELSE}`;
    throw new Error(`Maven fetches the Kafka broker, and "mvn" was not found: ${how}.`);
  }
  try {
    if (mvn.status !== 0) throw new Error(`Maven could not fetch the Kafka broker:\n${mvn.stdout}${mvn.stderr}`);
    if (!existsSync(jars)) renameSync(fresh, jars);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
