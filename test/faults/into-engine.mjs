// Loaded into a main process with --import: the engine that it starts gets the names and values of our own URL into its
// environment. The engine's environment is fixed (storage/embedded/clickhouse/clickhouse.ts), and product code knows no tests.
import child_process from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const more = Object.fromEntries(new URL(import.meta.url).searchParams);
const { spawn } = child_process;

child_process.spawn = (command, args, options) => {
  const isEngine = Array.isArray(args) && args.some((arg) => /clickhouse-server\.ts$/.test(arg));
  return spawn(command, args, isEngine ? { ...options, env: { ...options.env, ...more } } : options);
};
syncBuiltinESMExports();
