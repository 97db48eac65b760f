import { z } from 'zod';
import { addonAssociationShape } from '../../../core/catalog/addon/record.ts';
import { detachAddonShape } from '../../../core/subscriptions/attachment.ts';
import { attachAddonShape } from '../../../core/subscriptions/record.ts';
import { AddonAnswer } from '../../catalog/addons/schema.ts';
import { expand } from '../../http/list.ts';
import { SubscriptionAnswer } from '../../subscriptions/answer.ts';
import { InvoiceWithoutParts } from '../../subscriptions/invoice-answer.ts';
import { warnings } from '../../subscriptions/warnings.ts';

export const AttachAddon = attachAddonShape
  .extend({
    subscription_id: z
      .string()
      .min(1)
      .meta({ description: 'Id of the subscription. It must be active, in its trial, or a draft.' }),
    checkout: z.unknown().optional().meta({ description: 'Not supported yet; any value is refused.' }),
  })
  .meta({
    id: 'AddAddonRequest',
    example: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X', addon_id: 'addon_01JZ8K3M5N7P9Q1R3S5T7V9W1X' },
  });

export const DetachAddon = detachAddonShape.meta({
  id: 'RemoveAddonRequest',
  example: { addon_association_id: 'addon_assoc_01JZ8K3M5N7P9Q1R3S5T7V9W1X', reason: 'not needed any more' },
});

export const AddonAssociationExpand = z.object({ expand });
export const ADDON_ASSOCIATION_PARTS = ['addons', 'subscription'];

export const AddonAssociationAnswer = addonAssociationShape
  .extend({
    addon: AddonAnswer.nullable().meta({
      description: 'The add-on, without its prices, entitlements and credit grants.',
    }),
    subscription: SubscriptionAnswer.nullable().meta({
      description: 'Present if `expand` names subscription; else null.',
    }),
  })
  .meta({ id: 'AddonAssociationResponse' });

export const AttachAddonAnswer = AddonAssociationAnswer.extend({
  invoice: InvoiceWithoutParts.nullable().meta({
    description: 'Invoice of the charges that are due at once; null without any.',
  }),
  checkout_session: z.null().meta({ description: 'Always null; checkouts are not supported yet.' }),
  warnings,
}).meta({ id: 'AddAddonToSubscriptionResponse' });
