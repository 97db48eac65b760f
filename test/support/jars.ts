// Finds Java and Maven. Once per version and machine, it fetches the jars of a server that a pom.xml in this folder lists.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const JAVA_AT_LEAST = 17;

/** `what` is the program that runs on Java; `instead` is the alternative without Java. */
export type JavaServer = { name: string; pom: string; what: string; instead?: string };

/** Finds the directory of the server's jars; Maven fetches them if they are missing. */
export function ensureJars(server: JavaServer): string {
  requireJava(server);
  const jars = join(homedir(), '.cache', 'farthing', `${server.name}-${pinnedVersion(server)}`);
  if (!existsSync(jars)) fetchJars(server, jars);
  return jars;
}

function requireJava({ what, instead }: JavaServer): void {
  const asked = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const how = `install one (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk)${orElse(instead)}`;
  if (asked.error) throw new Error(`${what} needs Java ${JAVA_AT_LEAST} or newer, and "java" was not found: ${how}.`);
  const answer = asked.stderr + asked.stdout;
  const major = Number(/version "(\d+)/.exec(answer)?.[1]);
  if (major >= JAVA_AT_LEAST) return;
  throw new Error(
    `${what} needs Java ${JAVA_AT_LEAST} or newer; "java -version" says: ${answer.trim()}\nPlease ${how}.`,
  );
}

function pinnedVersion({ name, pom }: JavaServer): string {
  const version = new RegExp(`<${name}\\.version>([^<]+)<`).exec(readFileSync(pom, 'utf8'))?.[1];
  if (version === undefined) throw new Error(`${pom} names no ${name}.version.`);
  return version;
}

// Fetches to a new directory and renames it, so that an interrupted or concurrent fetch never leaves half a set.
function fetchJars({ pom, what, instead }: JavaServer, jars: string): void {
  const fresh = `${jars}.${process.pid}`;
  mkdirSync(dirname(jars), { recursive: true });
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${fresh}`];
  const mvn = spawnSync('mvn', ['-q', '-B', '-f', pom, ...goal], { encoding: 'utf8' });
  if (mvn.error) {
    const how = `install it (Debian: apt-get install maven; macOS: brew install maven)${orElse(instead)}`;
    throw new Error(`Maven fetches what ${what} runs from, and "mvn" was not found: ${how}.`);
  }
  try {
    if (mvn.status !== 0) throw new Error(`Maven could not fetch what ${what} runs from:\n${mvn.stdout}${mvn.stderr}`);
    if (!existsSync(jars)) renameSync(fresh, jars);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function orElse(instead: string | undefined): string {
  return instead === undefined ? '' : `, ${instead}`;
}
