/**
 * Destination of export files: a directory, or an S3-compatible store. A file is invisible until its commit, so it is
 * complete or absent. A second file with the same key replaces the first.
 */
import type { ReadStream } from 'node:fs';

export type NewFile = {
  /** Names of folders and of the file, separated by `/`. */
  readonly key: string;
  readonly content_type: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  /** Id of the upload that an earlier attempt began, which is aborted first; null in the first attempt. */
  readonly begun: string | null;
  /** Stores the id of the upload before anything is written, so that a later attempt can abort it. */
  onBegin(begun: string): Promise<void>;
};

export type WrittenFile = {
  readonly url: string;
  commit(): Promise<void>;
  /** Discards the unfinished file. */
  discard(): Promise<void>;
};

/** A file on this machine, and its size in bytes. */
export type LocalFile = { readonly bytes: ReadStream; readonly size: number };

export type ExportDestination = {
  write(file: NewFile): Promise<WrittenFile>;
  /** Aborts the upload of an earlier attempt under this key. If it may have been committed (`is_named`), deletes the file too. */
  takeAway(key: string, left: { begun: string; is_named: boolean }): Promise<void>;
  /** Reads the file under this key; throws `not_found` if there is none. */
  read(key: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** Creates a URL of the file that is valid for `seconds`; returns null if the destination has no URLs. */
  linkTo(key: string, seconds: number): Promise<string | null>;
};
