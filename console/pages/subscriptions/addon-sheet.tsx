/** Attaches an add-on, or detaches one, after showing the cost. */
import { Select } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { useGet } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ChangeInvoice, ChangeSheet, useChange, useCostPreview } from './change-cost.tsx';
import { CHANGE_TEXTS } from './change-texts.ts';
import { Radios } from './radios.tsx';
import type { SubscriptionRecord } from './subscription.ts';

type AddonSheetProps = {
  subscription: SubscriptionRecord;
  /** The association that is detached; undefined attaches an add-on. */
  association_id: string | undefined;
  onClose: () => void;
};
type AddonChangeBody = components['schemas']['ExecuteSubscriptionModifyRequest'];

const LIST_MAX = 200;

export function AddonSheet({ subscription, association_id, onClose }: AddonSheetProps): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const [addon_id, setAddon] = useState('');
  const [quantity, setQuantity] = useState('1');
  const [proration_behavior, setProration] = useState<'create_prorations' | 'none'>('create_prorations');
  const addons = useGet('/addons', { query: { limit: LIST_MAX } }, { enabled: association_id === undefined });
  const { id } = subscription;
  const body = buildModification({ association_id, addon_id, quantity, proration_behavior });
  const params = { path: { id } };
  const preview = useCostPreview<components['schemas']['SubscriptionModifyResponse'], AddonChangeBody>(
    '/subscriptions/{id}/modify/preview',
    id,
    body,
    (change) => api.POST('/subscriptions/{id}/modify/preview', { params, body: change }),
  );
  const deed = useChange(
    () => readData(api.POST('/subscriptions/{id}/modify/execute', { params, body: body! })),
    onClose,
  );
  const isAttaching = association_id === undefined;
  return (
    <ChangeSheet
      title={isAttaching ? texts.addonTitle : texts.detachTitle}
      fields={['addon_params']}
      preview={preview}
      isComplete={body !== null}
      incomplete={texts.choose}
      deed={deed}
      action={isAttaching ? texts.attachNow : texts.detachNow}
      onClose={onClose}
      form={
        <>
          {isAttaching && (
            <>
              <Select
                label={texts.addon}
                required
                searchable
                value={addon_id === '' ? null : addon_id}
                data={(addons.data?.items ?? []).map(({ id: value, name }) => ({ value, label: name }))}
                nothingFoundMessage={<NoOptions query={addons} none={texts.noAddon} />}
                error={findFieldError(preview, 'addon_params')}
                onChange={(value) => setAddon(value ?? '')}
              />
              <NumberInput label={texts.quantity} value={quantity} onValue={setQuantity} />
            </>
          )}
          <Radios
            label={texts.proration}
            value={proration_behavior}
            onValue={setProration}
            options={[
              ['create_prorations', texts.prorate],
              ['none', texts.noProrate],
            ]}
          />
        </>
      }
    >
      {({ changed_resources }) => <ChangeInvoice changed={changed_resources} at={null} />}
    </ChangeSheet>
  );
}

function buildModification({
  association_id,
  addon_id,
  quantity,
  proration_behavior,
}: {
  association_id: string | undefined;
  addon_id: string;
  quantity: string;
  proration_behavior: 'create_prorations' | 'none';
}): AddonChangeBody | null {
  if (association_id !== undefined)
    return {
      type: 'addon',
      addon_params: { action: 'remove', remove: { addon_association_id: association_id, proration_behavior } },
    };
  if (addon_id === '' || !/^\d+$/.test(quantity)) return null;
  return {
    type: 'addon',
    addon_params: { action: 'add', add: { addon_id, quantity: Number(quantity), proration_behavior } },
  };
}
