import { type Group, groupShape } from '../../../core/catalog/group/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface GroupModel extends Group {}

export class GroupModel extends ScopedModel {
  static override tableName = 'groups';
  static override recordName = 'group';
  static override record = groupShape;
}
