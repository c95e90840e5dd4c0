"""《大模型分布式训练算力需求特征手册》: the handbook, generated from the demand law in both languages."""
