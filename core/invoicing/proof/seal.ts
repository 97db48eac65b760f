/** Digest of a usage line's events, stored for a final invoice (docs/decisions/0016-invoice-proof.md). */
import { z } from 'zod';
import { timestampText } from '../../foundation/record.ts';

export const Seal = z
  .object({
    event_count: z.int().meta({ description: 'Number of leaves in the tree.' }),
    root: z.string().meta({ description: 'Root of the Merkle tree over the events, in hexadecimal digits.' }),
    sealed_at: timestampText.meta({
      description: 'Time at which the events were read for the digest, which happens once.',
    }),
  })
  .meta({ id: 'InvoiceLineSeal' });
export type Seal = z.infer<typeof Seal>;
