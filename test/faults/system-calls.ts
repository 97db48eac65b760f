/**
 * Faults at the system calls of one process, set and taken away while it runs:
 *
 *   const faults = await systemCallFaults();
 *   const service = await startServiceProcess(settings, { environment: faults.intoEngine() });
 *   const kill = faults.set({ call: 'rename', action: 'kill-before', path: '/tmp_insert_' });
 *   await faults.untilMet(kill);
 *
 * A library that is loaded before libc (preload.c) meets the calls; it is compiled when it is first asked for. Linux only.
 */
import { execFile } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';

const SOURCE = join(import.meta.dirname, 'preload.c');
const INTO_ENGINE = join(import.meta.dirname, 'into-engine.mjs');
const CONTROL_BYTES = 65_536;

export type CallFault = {
  /** `sync` is fsync and fdatasync. The path of `rename` is both names, `from -> to`. */
  readonly call: 'rename' | 'sync' | 'write' | 'open';
  readonly action: 'kill-before' | 'kill-after' | 'hold' | 'fail';
  /** Milliseconds of a hold, the number of an error. */
  readonly argument?: number;
  /** A part of the path. */
  readonly path: string;
  /** How many such calls pass before, and how many meet it; one when absent. */
  readonly skip?: number;
  readonly times?: number;
};

/** Errors of the operating system, by their numbers on Linux. */
export const ENOSPC = 28;

export class SystemCallFaults {
  readonly #library: string;
  readonly #control: string;
  readonly #file: number;
  readonly #rules = new Map<number, string>();
  #version = 0n;
  #ids = 0;

  constructor(library: string, control: string) {
    this.#library = library;
    this.#control = control;
    this.#file = openSync(control, 'w+', 0o666);
    ftruncateSync(this.#file, CONTROL_BYTES);
  }

  /** For a process itself, and what it starts with its own environment. */
  environment(): Record<string, string> {
    return { LD_PRELOAD: this.#library, FAULTS_CONTROL: this.#control };
  }

  /** For the engine below a main process alone. */
  intoEngine(): Record<string, string> {
    const module = pathToFileURL(INTO_ENGINE);
    for (const [name, value] of Object.entries(this.environment())) module.searchParams.set(name, value);
    return { NODE_OPTIONS: `--import=${module.href}` };
  }

  set({ call, action, argument = 0, path, skip = 0, times = 1 }: CallFault): number {
    return this.#add(`${call} ${action} ${argument} ${skip} ${times} ${path}`);
  }

  /** From here on the clock of the process is off by so much more. */
  stepClock(ms: number): number {
    return this.#add(`clock step ${ms} 0 0 -`);
  }

  /** What hangs because of it goes on. */
  remove(id: number): void {
    this.#rules.delete(id);
    this.#write();
  }

  clear(): void {
    this.#rules.clear();
    this.#write();
  }

  /** The paths of the calls that met it. */
  met(id: number): string[] {
    let told: string;
    try {
      told = readFileSync(`${this.#control}.log`, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
    return told.split('\n').flatMap((line) => {
      const [own, , ...path] = line.split(' ');
      return own === String(id) ? [path.join(' ')] : [];
    });
  }

  async untilMet(id: number, timeout_ms = 30_000): Promise<void> {
    await until(`fault ${this.#rules.get(id)} is met`, async () => this.met(id).length > 0, timeout_ms);
  }

  close(): void {
    closeSync(this.#file);
  }

  #add(rule: string): number {
    const id = ++this.#ids;
    this.#rules.set(id, rule);
    this.#write();
    return id;
  }

  /** The version last: until then the process goes by the rules that it has read. */
  #write(): void {
    const text = Buffer.alloc(CONTROL_BYTES - 8);
    text.write([...this.#rules].map(([id, rule]) => `${id} ${rule}\n`).join(''));
    writeSync(this.#file, text, 0, text.length, 8);
    const version = Buffer.alloc(8);
    version.writeBigUInt64LE(++this.#version);
    writeSync(this.#file, version, 0, 8, 0);
  }
}

let library: Promise<string> | undefined;
let controls = 0;

/** Nothing is at fault yet. */
export async function systemCallFaults(): Promise<SystemCallFaults> {
  library ??= compileLibrary(SOURCE);
  const file = await library;
  return new SystemCallFaults(file, `${file}.${++controls}.control`);
}

/** For LD_PRELOAD. */
export async function compileLibrary(source: string): Promise<string> {
  if (process.platform !== 'linux') throw new Error('faults at system calls are made by a library for Linux');
  // Also the user of an embedded Postgres reads it.
  const file = join(temporaryDirectory({ uid: process.getuid!(), gid: process.getgid!() }).path, 'faults.so');
  await promisify(execFile)('cc', ['-O1', '-shared', '-fPIC', '-o', file, source, '-ldl']).catch((error: Error) => {
    throw new Error(`faults at system calls need a C compiler, as cc: ${error.message}`);
  });
  return file;
}
