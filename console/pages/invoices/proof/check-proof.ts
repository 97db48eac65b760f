/**
 * Recomputes an invoice in the browser with the verifier's own arithmetic, and follows one event to the root of its line. Loaded when a
 * thread opens. Quantities are taken from the invoice: counting all events is left to `npm run verify-invoice`.
 */
import * as verifier from '../../../../commands/verify-invoice.mjs';
import type { components } from '../../../client/openapi.d.ts';

type ProofRecord = components['schemas']['InvoiceProof'];
type EventProofRecord = components['schemas']['InvoiceEventProof'];

/** A number that the verifier computes otherwise. `line` is the id of a line, or names another part of the document. */
export type ProofDifference = {
  readonly line: string;
  readonly field: string;
  readonly stated: string;
  readonly computed: string;
  /** The first digit that differs, in words. */
  readonly digit: string;
};

export type ProofReport = {
  readonly differences: readonly ProofDifference[];
  /** Facts that the document alone does not show. */
  readonly stated: readonly { readonly line: string; readonly what: string }[];
};

type Digest = (...parts: Uint8Array[]) => Promise<Uint8Array>;
const { verify, verifyEvent } = verifier as unknown as {
  verify: (proof: unknown) => Promise<ProofReport>;
  verifyEvent: (proof: unknown, event: unknown, digest: Digest) => Promise<ProofReport>;
};

export function checkInvoice(proof: ProofRecord): Promise<ProofReport> {
  return verify(proof);
}

export function checkEvent(proof: ProofRecord, event: EventProofRecord): Promise<ProofReport> {
  return verifyEvent(proof, event, computeDigest);
}

/** SHA-256 by WebCrypto, which a browser has on https and on localhost only. */
async function computeDigest(...parts: Uint8Array[]): Promise<Uint8Array> {
  if (!globalThis.crypto?.subtle) throw new Error('A browser hashes only on https or localhost.');
  return new Uint8Array(await crypto.subtle.digest('SHA-256', await new Blob(parts as BlobPart[]).arrayBuffer()));
}
