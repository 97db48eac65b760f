/** The record that a final invoice has of the events of a usage line (docs/decisions/0016-invoice-proof.md). */
import { z } from 'zod';
import { timestampText } from '../record.ts';

export const Seal = z
  .object({
    event_count: z.int().meta({ description: 'How many leaves the tree has.' }),
    root: z.string().meta({ description: 'Of the Merkle tree over the events, in hexadecimal digits.' }),
    sealed_at: timestampText.meta({ description: 'When the events were read for it, which is once.' }),
  })
  .meta({ id: 'InvoiceLineSeal' });
export type Seal = z.infer<typeof Seal>;
