/** Changes quantities of fixed charges, after showing the cost of the rest of the period. */
import { useDebouncedValue } from '@mantine/hooks';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { ChangeInvoice, ChangeSheet, useChange, useCostPreview } from './change-cost.tsx';
import { CHANGE_TEXTS } from './change-texts.ts';
import { listCurrentLines, type SubscriptionRecord } from './subscription.ts';

const TICK_MS = 2_000;

type QuantitySheetProps = { subscription: SubscriptionRecord; onClose: () => void };
const FIELD = 'quantity_change_params';

export function QuantitySheet({ subscription, onClose }: QuantitySheetProps): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const now_ms = useNow(TICK_MS);
  const lines = listCurrentLines(subscription.line_items ?? [], now_ms).filter(
    ({ price_type }) => price_type === 'FIXED',
  );
  const [quantities, setQuantities] = useState<Record<string, string>>({});
  const [settled] = useDebouncedValue(quantities, 300);
  const { id } = subscription;
  const changed = lines.flatMap((line) => {
    const quantity = settled[line.id];
    return quantity === undefined || quantity === '' || quantity === line.quantity ? [] : [{ id: line.id, quantity }];
  });
  const body =
    changed.length === 0 ? null : { type: 'quantity_change' as const, quantity_change_params: { line_items: changed } };
  const params = { path: { id } };
  const preview = useCostPreview<
    components['schemas']['SubscriptionModifyResponse'],
    components['schemas']['ExecuteSubscriptionModifyRequest']
  >('/subscriptions/{id}/modify/preview', id, body, (change) =>
    api.POST('/subscriptions/{id}/modify/preview', { params, body: change }),
  );
  const deed = useChange(
    () => readData(api.POST('/subscriptions/{id}/modify/execute', { params, body: body! })),
    onClose,
  );
  return (
    <ChangeSheet
      title={texts.quantityTitle}
      subtitle={texts.quantityHint}
      fields={[FIELD]}
      preview={preview}
      isComplete={body !== null}
      incomplete={texts.noChange}
      deed={deed}
      action={texts.changeQuantity}
      onClose={onClose}
      form={lines.map((line) => {
        const at = changed.findIndex((each) => each.id === line.id);
        return (
          <NumberInput
            key={line.id}
            label={line.display_name || line.price_id}
            value={quantities[line.id] ?? line.quantity}
            onValue={(quantity) => setQuantities((old) => ({ ...old, [line.id]: quantity }))}
            error={at < 0 ? undefined : findFieldError(preview, `${FIELD}.line_items[${at}]`)}
          />
        );
      })}
    >
      {({ changed_resources }) => <ChangeInvoice changed={changed_resources} at={null} />}
    </ChangeSheet>
  );
}
