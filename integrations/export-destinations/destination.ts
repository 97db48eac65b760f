/**
 * Where files are written: a directory, or what speaks S3. A file is there whole or not at all: what was written is seen by nobody
 * before it is committed, and a second file with the same key takes the place of the first.
 */
export type NewFile = {
  /** Names of folders and of the file, with `/` between them. */
  readonly key: string;
  readonly content_type: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  /** What an earlier try has begun, to be ended first; null of the first. */
  readonly begun: string | null;
  /** Told by what it will be known, before anything is written. */
  onBegin(begun: string): Promise<void>;
};

export type WrittenFile = {
  readonly url: string;
  commit(): Promise<void>;
  /** Takes away what was written. */
  discard(): Promise<void>;
};

export type ExportDestination = {
  write(file: NewFile): Promise<WrittenFile>;
  /** Ends what an earlier try has begun under this key, and, where that may have got its name, takes the file away. */
  takeAway(key: string, left: { begun: string; is_named: boolean }): Promise<void>;
  /** What is there under this key; not found where nothing is. */
  read(key: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** An address of the file that is good for so long; null where it has none of its own. */
  linkTo(key: string, seconds: number): Promise<string | null>;
};
