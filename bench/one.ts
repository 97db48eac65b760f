/** Runs one benchmark: a module that runs by itself, or one with a function `run`. */
const module = (await import(process.argv[2]!)) as { run?: () => Promise<void> };
await module.run?.();
