import { type Feature, featureShape } from '../../../core/catalog/feature/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface FeatureModel extends Feature {}

export class FeatureModel extends ScopedModel {
  static override tableName = 'features';
  static override recordName = 'feature';
  static override record = featureShape;
}
